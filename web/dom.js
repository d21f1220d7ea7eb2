// Small helpers for elements.

export const $ = (id) => document.getElementById(id);

// element("button", {class: "plain", onclick: f}, "text", child, ...)
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, value);
  made.append(...children.filter((child) => child != null));
  return made;
}

// A row of buttons of which one is pressed. choices: [[value, label]].
export class Segments {
  constructor(box, choices, chosen) {
    this.buttons = choices.map(([value, label]) =>
      element("button", { "data-value": value, "aria-pressed": "false", onclick: () => chosen(value) }, label));
    box.replaceChildren(...this.buttons);
  }
  set(value) {
    for (const button of this.buttons) button.setAttribute("aria-pressed", String(button.dataset.value === value));
  }
}

export function options(select, choices, chosen) {
  select.replaceChildren(...choices.map(([value, label]) => element("option", { value, selected: value === chosen }, label)));
}

export function say(text) {
  $("message").hidden = !text;
  $("message-text").textContent = text || "";
}

export const percent = (x, digits = 1) => `${(100 * x).toFixed(digits)} %`;
export const signed = (x) => (x < 0 ? "−" : "+") + Math.abs(x).toFixed(3);
export const time = (seconds) => (seconds < 0.9995 ? `${(1000 * seconds).toFixed(seconds < 0.00995 ? 1 : 0)} ms` : `${seconds.toFixed(1)} s`);
export const passes = ({ forwards, backwards }) => {
  const number = (x) => (Number.isInteger(x) ? x : x.toFixed(2));
  const parts = [forwards > 0 && `${number(forwards)} F`, backwards > 0 && `${number(backwards)} B`].filter(Boolean);
  return parts.join(" + ") || "no pass";
};
export const firstName = (name, index) => (name ? name.split(",")[0] : `class ${index}`);
