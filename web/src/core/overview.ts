import { useState } from "preact/hooks";
import { useEvents } from "./events";
import { useResource, type Resource } from "./resource";
import type { Overview } from "./types";

const changes = ["model_load.start", "model_load.end", "model_load.failed", "model_unload.*", "models.changed"] as const;

/** What is loaded now, as GET /api/v1/ps has it, with the progress of loads as it happens. */
export function useOverview(): Resource<Overview> {
	const overview = useResource<Overview>("/api/v1/ps", { events: changes, every: 4000 });
	const [progress, setProgress] = useState<Record<string, number>>({});
	useEvents(["model_load.progress"], (event) => {
		const { instance_id: id, progress: share } = event;
		if (typeof id === "string" && typeof share === "number") setProgress((all) => ({ ...all, [id]: share }));
	});
	useEvents(["model_load.end", "model_load.failed"], ({ instance_id: id }) => {
		setProgress((all) => Object.fromEntries(Object.entries(all).filter(([other]) => other !== id)));
	});
	const { data } = overview;
	if (!data) return overview;
	const instances = data.instances.map((i) => {
		const newer = progress[i.id];
		return newer !== undefined && i.progress !== undefined && newer > i.progress ? { ...i, progress: newer } : i;
	});
	return { ...overview, data: { ...data, instances } };
}
