/** Words and numbers: every text comes from the texts of the page, and names from data are text, never markup. */

let texts = {};

/** Take the page's texts. */
export function setTexts(given) { texts = given; }

/** Return a text by its key, its {places} filled in. */
export function say(key, values = {}) {
  return (texts[key] ?? key).replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);
}

/** Return a count as people read it: whole, with separators, and no more digits than it is worth. */
export function number(value) {
  if (!Number.isFinite(value) || value > 1e200) return "∞";
  const rounded = value >= 10000 ? Math.round(value / 10) * 10 : Math.round(value);
  return rounded.toLocaleString("en");
}

/** Return what a tick is called. */
export function tickName({ tick, label }) {
  return label ? say("tick_when", { tick, label }) : say("tick", { tick });
}

/** Return an element with attributes and children; texts become text. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") made.addEventListener("click", value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Return the element of an id. */
export const byId = (id) => document.getElementById(id);
