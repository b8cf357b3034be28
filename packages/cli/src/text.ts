/** For text that may be piped: as wide as a usual terminal. */
export const TEXT_WIDTH = 80;

/** Breaks a paragraph into lines that begin with the indentation. */
export function wrap(text: string, indentation = '', width = TEXT_WIDTH): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && indentation.length + longer.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = longer;
    }
  }
  return [...lines, line].map((each) => indentation + each).join('\n');
}
