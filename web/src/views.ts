import type { ComponentType } from "preact";
import type { Scope } from "./core/types";
import type { IconName } from "./ui/icons";
import { Status } from "./views/status";

export interface ViewEntry {
	/** Its name in the address: #/name. */
	name: string;
	title: string;
	group: "" | "Models" | "Activity" | "Server";
	icon: IconName;
	component: ComponentType<{ rest: string }>;
	/** What its reader has to be allowed; absent: nothing. */
	scope?: Scope;
}

/** All views, in the order of the menu. The first one is shown at the start. */
export const views: readonly ViewEntry[] = [
	{ name: "status", title: "Status", group: "", icon: "status", component: Status },
];
