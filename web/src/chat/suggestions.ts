// Models for a first chat.

import type { Overview } from "../core/types";
import { texts } from "../texts";

interface Suggestion {
	/** The name by which the server downloads it. */
	model: string;
	about: string;
	/** About what the file has in the quantization that the server chooses, in GiB. */
	size: number;
}

/** From the largest to the smallest: what is known to answer well for its size. */
const all: readonly Suggestion[] = [
	{ model: "openai/gpt-oss-120b", about: texts.suggestions.thinksCallsToolsLarge, size: 60 },
	{ model: "qwen/qwen3-30b-a3b-2507", about: texts.suggestions.quickSizeCallsTools, size: 18 },
	{ model: "openai/gpt-oss-20b", about: texts.suggestions.thinksCallsTools, size: 12 },
	{ model: "qwen/qwen3-8b", about: texts.suggestions.thinksCallsTools, size: 5 },
	{ model: "qwen/qwen3-4b-2507", about: texts.suggestions.answersOnceCallsTools, size: 2.5 },
	{ model: "qwen/qwen3-1.7b", about: texts.suggestions.smallThinks, size: 1.8 },
	{ model: "qwen/qwen3-0.6b", about: texts.suggestions.forTryingThingsOut, size: 0.6 },
];

const beside = 1.5; // GiB of context and computing
const GiB = 1 << 30;

/** Returns three models that fit this machine: wholly on its largest GPU, if it has one with memory of its own. */
export function suggestionsFor(o: Overview): readonly Suggestion[] {
	const gpus = (o.devices ?? []).filter((d) => d.kind === "gpu" && !d.unified).map((d) => d.budget_bytes ?? d.total_bytes);
	const memory = o.limits.memory_budget_bytes || Math.max(0, ...(o.devices ?? []).map((d) => d.total_bytes));
	const room = (gpus.length > 0 ? Math.max(...gpus) : memory) / GiB;
	const fitting = all.filter((s) => s.size + beside <= room);
	return (fitting.length > 0 ? fitting : all.slice(-1)).slice(0, 3);
}
