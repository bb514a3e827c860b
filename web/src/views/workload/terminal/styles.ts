// The terminal writes its styles into <style> elements and `style` attributes, which the page's content security policy
// does not allow. It gets a document that makes other elements instead; what it writes into them becomes a style sheet of
// this script, and attributes are set as scripts may set them.
export interface OwnStyles {
  document: Document;
  /** Does something during which the page's own document makes such elements too: one part of the terminal uses that. */
  during: (work: () => void) => void;
  remove: () => void;
}

const ELEMENT = "fairlead-styles";
const makeElement: (this: Document, name: string) => HTMLElement = Reflect.get(Document.prototype, "createElement");

HTMLSpanElement.prototype.setAttribute = function (this: HTMLSpanElement, name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
};

export function ownStyles(): OwnStyles {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  const written: HTMLElement[] = [];
  const changes = new MutationObserver(() => sheet.replaceSync(written.map((one) => one.textContent).join("\n")));
  const make = (name: string): HTMLElement => {
    if (name.toLowerCase() !== "style") return makeElement.call(document, name);
    const element = makeElement.call(document, ELEMENT);
    element.hidden = true;
    written.push(element);
    changes.observe(element, { childList: true, characterData: true, subtree: true });
    return element;
  };
  const other = new Proxy(document, {
    get(target, key) {
      if (key === "createElement") return make;
      const value: unknown = Reflect.get(target, key);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  return {
    document: other,
    during: (work) => {
      Reflect.set(document, "createElement", make);
      try {
        work();
      } finally {
        Reflect.deleteProperty(document, "createElement");
      }
    },
    remove: () => {
      changes.disconnect();
      document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    },
  };
}
