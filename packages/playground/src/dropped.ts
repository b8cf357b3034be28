// Files of a drop, also from folders, with their paths.
export interface PathFile {
  readonly file: File;
  readonly path: string;
}

export function chosen(files: Iterable<File>): PathFile[] {
  return [...files].map((file) => ({ file, path: file.webkitRelativePath || file.name }));
}

/** Reads folders too. The entries must be taken from the event at once: a drop ends with it. */
export async function dropped(transfer: DataTransfer): Promise<PathFile[]> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.() ?? null);
  if (entries.every((entry) => entry === null)) return chosen(transfer.files);
  const found = await Promise.all(entries.map((entry) => (entry ? filesIn(entry) : [])));
  return found.flat();
}

async function filesIn(entry: FileSystemEntry): Promise<PathFile[]> {
  if (entry instanceof FileSystemFileEntry || entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => {
      (entry as FileSystemFileEntry).file(resolve, reject);
    });
    return [{ file, path: entry.fullPath.replace(/^\//, '') }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const children: FileSystemEntry[] = [];
  // A reader returns a folder in pieces, the last of which is empty.
  for (;;) {
    const piece = await new Promise<FileSystemEntry[]>((resolve, reject) => {
      reader.readEntries(resolve, reject);
    });
    if (piece.length === 0) break;
    children.push(...piece);
  }
  return (await Promise.all(children.map(filesIn))).flat();
}
