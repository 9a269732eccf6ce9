import { useEffect, useState } from "preact/hooks";

/** A value that components follow. */
export class Store<T> {
	#value: T;
	#followers = new Set<(value: T) => void>();

	constructor(value: T) {
		this.#value = value;
	}

	get value(): T {
		return this.#value;
	}

	set(value: T): void {
		if (Object.is(value, this.#value)) return;
		this.#value = value;
		for (const follower of [...this.#followers]) follower(value);
	}

	follow(follower: (value: T) => void): () => void {
		this.#followers.add(follower);
		return () => this.#followers.delete(follower);
	}
}

/** Renders the component again whenever the store's value changes. */
export function useStore<T>(store: Store<T>): T {
	const [value, setValue] = useState<T>(() => store.value);
	useEffect(() => {
		setValue(() => store.value);
		return store.follow((changed) => setValue(() => changed));
	}, [store]);
	return value;
}
