import { language, texts } from "../texts";

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

/** A size, such as "4.1 GiB". */
export function formatBytes(bytes: number | null | undefined): string {
	if (bytes === null || bytes === undefined) return "–";
	let unit = 0;
	let size = bytes;
	while (Math.abs(size) >= 1024 && unit < units.length - 1) {
		size /= 1024;
		unit++;
	}
	const digits = unit === 0 || Math.abs(size) >= 100 ? 0 : 1;
	return `${size.toFixed(digits)} ${units[unit]}`;
}

/** A duration, such as "1.2 s" or "3 min 5 s". */
export function formatDuration(seconds: number | null | undefined): string {
	if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
	const unit = texts.format;
	if (seconds < 0.0995) return `${Math.round(seconds * 1000)} ${unit.ms}`;
	if (seconds < 9.95) return `${seconds.toFixed(1)} ${unit.s}`;
	const whole = Math.round(seconds);
	if (whole < 60) return `${whole} ${unit.s}`;
	if (whole < 3600) return two(Math.floor(whole / 60), unit.min, whole % 60, unit.s);
	if (whole < 86_400) return two(Math.floor(whole / 3600), unit.h, Math.round((whole % 3600) / 60), unit.min);
	return two(Math.floor(whole / 86_400), unit.d, Math.round((whole % 86_400) / 3600), unit.h);
}

function two(n: number, unit: string, rest: number, smaller: string): string {
	return rest ? `${n} ${unit} ${rest} ${smaller}` : `${n} ${unit}`;
}

/** Makes something when it is first needed. What formats takes milliseconds to make, which the first view shouldn't wait for. */
function lazy<T>(make: () => T): () => T {
	let made: T | undefined;
	return () => (made ??= make());
}

const numbers = lazy(() => new Intl.NumberFormat(language));

/** A number, such as "32,768". */
export const formatNumber = (n: number | null | undefined): string => (n === null || n === undefined ? "–" : numbers().format(n));

/** A number for each second, such as "7.4" or "2,913". */
export const formatRate = (n: number | null | undefined): string => (!n ? "–" : n < 10 ? n.toFixed(1) : numbers().format(Math.round(n)));

const compact = lazy(() => new Intl.NumberFormat(language, { notation: "compact", maximumFractionDigits: 1 }));

/** A large number, such as "1.2M". */
export const formatCompact = (n: number | null | undefined): string => (n === null || n === undefined ? "–" : compact().format(n));

export const formatPercent = (share: number): string => `${Math.round(Math.min(Math.max(share, 0), 1) * 100)} %`;

const times = lazy(() => new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" }));
const days = lazy(() => new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" }));

/** A time of today, or a day and a time. */
export function formatTime(at: string | number | Date | null | undefined): string {
	const date = toDate(at);
	if (!date) return "–";
	return date.toDateString() === new Date().toDateString() ? times().format(date) : `${days().format(date)}, ${times().format(date)}`;
}

export function formatDay(at: string | number | Date | null | undefined): string {
	const date = toDate(at);
	return date ? days().format(date) : "–";
}

/** How long ago something was, such as "5 min ago". */
export function formatAgo(at: string | number | Date | null | undefined, now = Date.now()): string {
	const date = toDate(at);
	if (!date) return texts.common.lowerNever;
	const seconds = (now - date.getTime()) / 1000;
	if (seconds < 5) return texts.format.justNow;
	return texts.format.ago(coarse(seconds));
}

/** When something will be, such as "in 5 min". */
export function formatUntil(at: string | number | Date | null | undefined, now = Date.now()): string {
	const date = toDate(at);
	if (!date) return texts.common.lowerNever;
	const seconds = (date.getTime() - now) / 1000;
	return seconds <= 0 ? texts.format.now : texts.format.until(coarse(seconds));
}

function coarse(seconds: number): string {
	const unit = texts.format;
	if (seconds < 60) return `${Math.round(seconds)} ${unit.s}`;
	if (seconds < 3600) return `${Math.round(seconds / 60)} ${unit.min}`;
	if (seconds < 86_400) return `${Math.round(seconds / 3600)} ${unit.h}`;
	return `${Math.round(seconds / 86_400)} ${unit.d}`;
}

function toDate(at: string | number | Date | null | undefined): Date | null {
	if (at === null || at === undefined || at === "") return null;
	const date = new Date(at);
	return Number.isNaN(date.getTime()) ? null : date;
}
