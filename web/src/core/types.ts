import type { components, operations } from "../schema";

type Schemas = components["schemas"];

export type Scope = "models.read" | "models.manage" | "inference" | "mcp.plugin" | "mcp.ephemeral" | "admin";

/** The identity of whoever uses the page. */
export type Identity = NonNullable<Schemas["Settings"]["identity"]>;
export type Preset = NonNullable<Schemas["Settings"]["presets"]>[number];
export type Settings = Schemas["Settings"];

export type Model = Schemas["Model"];
export type Models = Schemas["Models"];
export type ModelDetails = Schemas["ModelDetails"];
export type Companions = Schemas["Companions"];
export type Companion = Schemas["Companion"];
export type Place = NonNullable<ModelDetails["places"]>[number];
export type LoadEstimate = Schemas["LoadEstimate"];
export type Loaded = Schemas["Loaded"];
export type Overview = Schemas["Overview"];
export type OverviewInstance = Schemas["OverviewInstance"];
export type OverviewRemote = NonNullable<Overview["remotes"]>[number];
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
export type Conversation = Schemas["Conversation"];
export type Conversations = Schemas["Conversations"];
export type LogRecord = Schemas["LogRecord"];

export type MCPServers = Schemas["MCPServers"];
export type MCPServer = MCPServers["servers"][number];
export type MCPServerWithTools = Schemas["MCPServerWithTools"];

export type Variants = operations["listVariants"]["responses"]["200"]["content"]["application/json"];
export type Variant = Variants["variants"][number];
