import { formatPercent } from "../core/format";
import { texts } from "../texts";

export interface Part {
	name: string;
	amount: number;
	/** Which of the colours; absent: they follow each other. */
	shade?: number;
}

/** A bar of parts of a whole, with a legend. */
export function Bar({ label, parts, total, format }: { label: string; parts: readonly Part[]; total: number; format: (amount: number) => string }) {
	const whole = Math.max(total, parts.reduce((sum, p) => sum + p.amount, 0), 1);
	const text = parts.map((p) => `${p.name}: ${format(p.amount)}`).join("; ");
	return (
		<div class="bar" role="img" aria-label={texts.tables.inAllLabel(label, text || texts.tables.nothingIsUsed, format(total))}>
			{parts.map((p, i) => (
				<span key={p.name} class={`part shade-${(p.shade ?? i) % 6}`} style={{ width: `${(100 * p.amount) / whole}%` }} title={`${p.name}: ${format(p.amount)}`} />
			))}
		</div>
	);
}

/** The progress of something, from 0 to 1; null: unknown. */
export function Progress({ label, value }: { label: string; value: number | null }) {
	return (
		<div class="progress">
			<progress aria-label={label} max={1} value={value ?? undefined} />
			<span class="tabular">{value === null ? "…" : formatPercent(value)}</span>
		</div>
	);
}
