import { useResource } from "../core/resource";
import type { Overview } from "../core/types";
import { Fetched } from "../ui/states";
import { View } from "../ui/View";

export function Status() {
	const overview = useResource<Overview>("/api/v1/ps", { events: ["model_*"] });
	return (
		<View title="Status">
			<Fetched from={overview}>{(o) => <p>{o.instances.length}</p>}</Fetched>
		</View>
	);
}
