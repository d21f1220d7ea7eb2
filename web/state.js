// Everything that is to be seen is in the address, so that a link shows it again on the same machine.

const kStart = {
  tab: "explain", model: "", image: "", sample: "", name: "", class: "", contrast: "", method: "", T: 0,
  view: "overlay", opacity: 65, share: 0, mode: "delete", reference: "black", methods: "", compare: "",
};

export const state = { ...kStart };

export function readAddress() {
  Object.assign(state, kStart);
  for (const [key, value] of new URLSearchParams(location.hash.slice(1)))
    if (key in kStart) state[key] = typeof kStart[key] === "number" ? Math.min(100, Math.max(0, Number(value) || 0)) : value;
  state.T = Math.min(5, Math.round(state.T));
  state.share = Math.round(state.share);
}

export function writeAddress() {
  const said = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) if (value !== kStart[key]) said.set(key, value);
  const hash = said.toString();
  if (hash !== location.hash.slice(1)) history.replaceState(null, "", hash ? `#${hash}` : location.pathname);
}
