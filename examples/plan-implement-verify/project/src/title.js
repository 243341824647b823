/** A heading: `The Last Day` for `the last day`. */
export function title(text) {
  return text;
}
