export class Terminal {
  constructor(options: object);
  cols: number;
  rows: number;
  loadAddon(addon: object): void;
  open(box: Element): void;
  write(data: Uint8Array, done: () => void): void;
  reset(): void;
  focus(): void;
  dispose(): void;
  onData(heard: (text: string) => void): void;
  onBinary(heard: (text: string) => void): void;
  onResize(heard: () => void): void;
  attachCustomKeyEventHandler(heard: (event: KeyboardEvent) => boolean): void;
}
