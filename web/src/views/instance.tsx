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
import { texts } from "../texts";

const tones: Record<OverviewInstance["status"], Tone> = { starting: "busy", loading: "busy", ready: "good", draining: "warning", stopping: "warning", unreachable: "bad" };
const words: Record<OverviewInstance["status"], string> = { starting: texts.instance.starting, loading: texts.common.loading, ready: texts.instance.ready, draining: texts.instance.finishing, stopping: texts.instance.stopping, unreachable: texts.common.unreachable };

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
	if (i.status === "loading" && i.progress !== undefined) return <Progress label={texts.instance.loadingId(i.id)} value={i.progress} />;
	return (
		<span class="row tight">
			<Badge tone={tones[i.status]}>{words[i.status]}</Badge>
			{i.remote && <Badge>{texts.instance.onRemote(i.remote)}</Badge>}
			{i.pinned && <Badge>{texts.common.pinned}</Badge>}
			{i.smaller && <Badge tone="warning">{texts.instance.reduced}</Badge>}
			{i.split && <Badge tone="warning">{texts.instance.notWhollyGpu}</Badge>}
			{i.renewing && <Badge>{texts.instance.newSettingsSoon}</Badge>}
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
		toast(i.pinned ? texts.instance.mayUnloadedOtherModels(i.id) : texts.instance.staysLoadedId(i.id));
		onDone();
	};
	return (
		<span class="actions">
			<Button small icon="pin" disabledFor={disabledFor} onClick={pin} aria-label={`${i.pinned ? texts.common.unpin : texts.common.pin} ${i.id}`}>
				{i.pinned ? texts.common.unpin : texts.common.pin}
			</Button>
			<Unload of={i} disabledFor={disabledFor} onDone={onDone} />
		</span>
	);
}

export function Unload({ of: i, disabledFor, onDone }: { of: OverviewInstance; disabledFor: string | null; onDone: () => void }) {
	const unload = async () => {
		await post("/api/v1/models/unload", { instance_id: i.id });
		toast(texts.instance.isUnloadedId(i.id));
		onDone();
	};
	return (
		<Button small disabledFor={disabledFor} onClick={unload} aria-label={texts.instance.unloadId(i.id)}>{texts.instance.unload}</Button>
	);
}
