export interface Signal<T> {
  value: T;
}
export function signal<T>(start: T): Signal<T>;
export function computed<T>(make: () => T): { readonly value: T };
