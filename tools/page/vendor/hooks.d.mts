type Ref<T> = { current: T };
export function useState(start?: unknown): [any, (next: any) => void];
export function useContext(of: unknown): any;
export function useRef(start?: unknown): Ref<any>;
export function useMemo<T>(make: () => T, on: unknown[]): T;
export function useEffect(run: () => void | (() => void), on?: unknown[]): void;
export function useLayoutEffect(run: () => void | (() => void), on?: unknown[]): void;
