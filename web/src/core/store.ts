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
	return useSelected(store, (value) => value);
}

/** Renders the component again whenever something about the store's value changes, which is a string, a number or the like. */
export function useSelected<T, S>(store: Store<T>, select: (value: T) => S): S {
	const [selected, setSelected] = useState<S>(() => select(store.value));
	useEffect(() => {
		setSelected(() => select(store.value));
		return store.follow((changed) => setSelected(() => select(changed)));
	}, [store]);
	return selected;
}
