// Copying text. Browsers offer their clipboard only to pages by HTTPS or from this machine; the page may be neither.

export async function copyText(text: string): Promise<void> {
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (clipboard) return clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  // Nothing outside an open dialog can be selected.
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the only way without a clipboard
  const isCopied = document.execCommand("copy");
  area.remove();
  if (!isCopied) throw new Error("The browser did not let the page copy it. Select the text and copy it yourself.");
}
