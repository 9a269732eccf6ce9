import { formatBytes } from "../core/format";
import { post } from "../core/http";
import { href } from "../core/router";
import { lacks, useCan } from "../core/session";
import type { OverviewInstance } from "../core/types";
import { Button } from "../ui/Button";
import { Key } from "../ui/Key";
import { Progress } from "../ui/Meter";
import { Badge, type Tone } from "../ui/states";
import { toast } from "../ui/toast";

const tones: Record<OverviewInstance["status"], Tone> = { starting: "busy", loading: "busy", ready: "good", draining: "warning", stopping: "warning", unreachable: "bad" };
const words: Record<OverviewInstance["status"], string> = { starting: "Starting", loading: "Loading", ready: "Ready", draining: "Finishing", stopping: "Stopping", unreachable: "Unreachable" };

/** The id of an instance, with a link to its model. */
export function InstanceLink({ of: i }: { of: OverviewInstance }) {
	return (
		<a href={href("models", i.model)}>
			<Key of={i.id} />
		</a>
	);
}

/** The memory that an instance takes of this machine. */
export const formatClaim = (i: OverviewInstance): string => (i.remote ? "–" : formatBytes(i.memory_bytes));

/** What an instance is doing. */
export function InstanceState({ of: i }: { of: OverviewInstance }) {
	if (i.status === "loading" && i.progress !== undefined) return <Progress label={`Loading ${i.id}`} value={i.progress} />;
	return (
		<span class="row tight">
			<Badge tone={tones[i.status]}>{words[i.status]}</Badge>
			{i.remote && <Badge>On {i.remote}</Badge>}
			{i.pinned && <Badge>Pinned</Badge>}
			{i.smaller && <Badge tone="warning">Reduced</Badge>}
			{i.split && <Badge tone="warning">Not wholly on the GPU</Badge>}
			{i.renewing && <Badge>New settings soon</Badge>}
			{i.placement && <span class="hint">{i.placement}</span>}
			{i.reason && <span class="hint">{i.reason}</span>}
		</span>
	);
}

/** What can be done with an instance. */
export function InstanceActions({ of: i, onDone }: { of: OverviewInstance; onDone: () => void }) {
	const disabledFor = useCan("models.manage") ? null : lacks("models.manage");
	const pin = async () => {
		await post("/api/v1/models/pin", { instance_id: i.id, pinned: !i.pinned });
		toast(i.pinned ? `${i.id} may be unloaded for other models again.` : `${i.id} stays loaded.`);
		onDone();
	};
	return (
		<span class="actions">
			<Button small icon="pin" disabledFor={disabledFor} onClick={pin} aria-label={`${i.pinned ? "Unpin" : "Pin"} ${i.id}`}>
				{i.pinned ? "Unpin" : "Pin"}
			</Button>
			<Unload of={i} disabledFor={disabledFor} onDone={onDone} />
		</span>
	);
}

export function Unload({ of: i, disabledFor, onDone }: { of: OverviewInstance; disabledFor: string | null; onDone: () => void }) {
	const unload = async () => {
		await post("/api/v1/models/unload", { instance_id: i.id });
		toast(`${i.id} is unloaded.`);
		onDone();
	};
	return (
		<Button small disabledFor={disabledFor} onClick={unload} aria-label={`Unload ${i.id}`}>
			Unload
		</Button>
	);
}
