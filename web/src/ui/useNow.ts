import { useEffect, useState } from "preact/hooks";

/** The time, renewed every so many milliseconds, for what is shown as "5 min ago". */
export function useNow(every = 5000): number {
	const [now, setNow] = useState(() => Date.now());
	useEffect(() => {
		const timer = setInterval(() => document.visibilityState === "visible" && setNow(Date.now()), every);
		return () => clearInterval(timer);
	}, [every]);
	return now;
}
