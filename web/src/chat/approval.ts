// Calls of tools that wait until they are approved.

import { post, segment } from "../core/http";
import type { Answer, CallPart } from "./answer";
import { changeOptions, options } from "./options";

/** The name of a call's tool among those of all servers. */
export const toolName = (call: CallPart): string => `${call.server} ${call.tool}`;

/** Approves or refuses a call. With always, calls of its tool are approved from now on. */
export async function decide({ responseId }: Answer, call: CallPart, approved: boolean, always = false): Promise<void> {
	if (always) changeOptions({ approved: [...options.value.approved, toolName(call)] });
	await post(`/api/v1/responses/${segment(responseId)}/approve`, { call_id: call.id, approved });
}

const decided = new Set<string>(); // ids of calls

/** Approves the calls of an answer whose tools are always approved. */
export function approveKnown(a: Answer): void {
	for (const p of a.parts) {
		if (p.kind !== "call" || p.status !== "waiting" || !p.id || decided.has(p.id) || !options.value.approved.includes(toolName(p))) continue;
		decided.add(p.id);
		void decide(a, p, true).catch(() => undefined); // it is decided already
	}
}
