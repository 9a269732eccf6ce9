import { useEffect, useState } from "preact/hooks";

/** Whether a media query holds, such as "(min-width: 1100px)". */
export function useMedia(query: string): boolean {
	const [holds, setHolds] = useState(() => matchMedia(query).matches);
	useEffect(() => {
		const list = matchMedia(query);
		const onChange = () => setHolds(list.matches);
		list.addEventListener("change", onChange);
		return () => list.removeEventListener("change", onChange);
	}, [query]);
	return holds;
}
