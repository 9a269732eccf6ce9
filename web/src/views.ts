import type { ComponentType } from "preact";
import type { Scope } from "./core/types";
import type { IconName } from "./ui/icons";
import { ChatView } from "./views/chat";
import { Conversations } from "./views/conversations";
import { Downloads } from "./views/downloads";
import { Logs } from "./views/logs";
import { MCP } from "./views/mcp";
import { Memory } from "./views/memory";
import { Models } from "./views/models";
import { Requests } from "./views/requests";
import { Settings } from "./views/settings";
import { Status } from "./views/status";
import { Tokens } from "./views/tokens";
import { Usage } from "./views/usage";
import { Warm } from "./views/warm";

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
	{ name: "chat", title: "Chat", group: "", icon: "chat", component: ChatView, scope: "inference" },
	{ name: "conversations", title: "Conversations", group: "", icon: "conversations", component: Conversations, scope: "inference" },
	{ name: "models", title: "Models", group: "Models", icon: "models", component: Models, scope: "models.read" },
	{ name: "downloads", title: "Downloads", group: "Models", icon: "downloads", component: Downloads, scope: "models.read" },
	{ name: "memory", title: "Memory", group: "Models", icon: "memory", component: Memory, scope: "models.read" },
	{ name: "warm", title: "Warm states", group: "Models", icon: "warm", component: Warm, scope: "models.manage" },
	{ name: "requests", title: "Requests", group: "Activity", icon: "requests", component: Requests, scope: "inference" },
	{ name: "logs", title: "Logs", group: "Activity", icon: "logs", component: Logs, scope: "admin" },
	{ name: "usage", title: "Usage", group: "Activity", icon: "usage", component: Usage, scope: "models.read" },
	{ name: "tokens", title: "Tokens", group: "Server", icon: "tokens", component: Tokens, scope: "admin" },
	{ name: "mcp", title: "MCP servers", group: "Server", icon: "mcp", component: MCP, scope: "mcp.plugin" },
	{ name: "settings", title: "Settings", group: "Server", icon: "settings", component: Settings },
];
