/** What is kept in this tab only, as text. It falls back to memory where the browser allows no storage. */
export const inTab = keeper(() => sessionStorage);

/** What is kept in this browser: looks, and what a chat asks with until one signs out; nothing secret. */
export const inBrowser = keeper(() => localStorage);

function keeper(storage: () => Storage) {
	const memory = new Map<string, string>();
	const key = (name: string) => "lmcaddy." + name;
	return {
		get(name: string): string | null {
			try {
				return storage().getItem(key(name)) ?? memory.get(name) ?? null;
			} catch {
				return memory.get(name) ?? null;
			}
		},
		set(name: string, value: string | null): void {
			memory.delete(name);
			try {
				if (value === null) storage().removeItem(key(name));
				else storage().setItem(key(name), value);
			} catch {
				if (value !== null) memory.set(name, value);
			}
		},
	};
}
