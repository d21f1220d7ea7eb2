// Everything that is to be seen is in the address, so that a link shows it again on the same machine.
// `at`: zoom and center of the map; `paint`: what the brush hid, as runs; `sort`: how the images of an evaluation are ordered.

const kStart = {
  tab: "explain", model: "", image: "", sample: "", name: "", class: "", contrast: "", method: "", T: 0,
  view: "overlay", opacity: 65, share: 0, mode: "delete", reference: "black", methods: "", compare: "", at: "", paint: "", sort: "",
};

export const state = { ...kStart };

export function readAddress() {
  Object.assign(state, kStart);
  for (const [key, value] of new URLSearchParams(location.hash.slice(1)))
    if (key in kStart) state[key] = typeof kStart[key] === "number" ? Math.min(100, Math.max(0, Number(value) || 0)) : value;
  state.T = Math.min(5, Math.round(state.T));
  state.share = Math.round(state.share);
}

// Browsers allow few changes of the address in a second: a moving slider writes it when it has come to rest.
let later = 0;
export function writeAddress() {
  clearTimeout(later);
  later = setTimeout(writeNow, 150);
}

function writeNow() {
  const said = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) if (value !== kStart[key]) said.set(key, value);
  const hash = said.toString();
  if (hash !== location.hash.slice(1)) history.replaceState(null, "", hash ? `#${hash}` : location.pathname);
}
