import type { components } from "../schema";

type Schemas = components["schemas"];

export type Scope = "models.read" | "models.manage" | "inference" | "mcp.plugin" | "mcp.ephemeral" | "admin";

/** The identity of whoever uses the page. */
export interface Identity {
	name: string;
	scopes: Scope[];
	models: string[];
}

export interface Preset {
	name: string;
	fields?: Record<string, unknown>;
}

export type Settings = Omit<Schemas["Settings"], "identity" | "presets" | "version"> & {
	identity?: Identity | null;
	presets?: Preset[];
	version?: string;
};

export type Model = Schemas["Model"];
export type Models = Schemas["Models"];
export type ModelDetails = Schemas["ModelDetails"];
export type LoadEstimate = Schemas["LoadEstimate"];
export type Loaded = Schemas["Loaded"];
export type Overview = Schemas["Overview"];
export type OverviewInstance = Schemas["OverviewInstance"];
export type FoundModel = Schemas["FoundModel"];
export type FoundModels = Schemas["FoundModels"];
export type DownloadJob = Schemas["DownloadJob"];
export type DownloadJobs = Schemas["DownloadJobs"];
export type DownloadPreview = Schemas["DownloadPreview"];
export type WarmStates = Schemas["WarmStates"];
export type Health = Schemas["Health"];
export type Configuration = Schemas["Configuration"];
export type Setting = Schemas["Setting"];
export type Token = Schemas["Token"];
export type LogRecord = Schemas["LogRecord"];

export interface MCPServer {
	label: string;
	transport: "stdio" | "http" | "sse";
	status: "connected" | "idle" | "failed";
	error?: string;
	sessions: number;
	tools?: number | null;
	url?: string;
	command?: string;
}

export interface MCPServers {
	servers: MCPServer[];
}

export interface MCPTool {
	name: string;
	title?: string;
	description: string;
	input_schema: unknown;
}
