// Made by `make page` from api/openapi.json.

export interface paths {
    "/api/v1/chat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sends a message in a conversation that the server stores
         * @description Needs the scope `inference`.
         */
        post: operations["chat"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists stored conversations
         * @description Needs the scope `inference`.
         */
        get: operations["listConversations"];
        put?: never;
        /**
         * Stores a conversation
         * @description Needs the scope `inference`.
         */
        post: operations["importConversation"];
        /**
         * Deletes the conversations whose last response is older than a time
         * @description Needs the scope `inference`.
         */
        delete: operations["deleteConversations"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns a conversation
         * @description Needs the scope `inference`.
         */
        get: operations["getConversation"];
        put?: never;
        post?: never;
        /**
         * Deletes a conversation
         * @description Needs the scope `inference`.
         */
        delete: operations["deleteConversation"];
        options?: never;
        head?: never;
        /**
         * Changes a conversation's title, or pins it
         * @description Fields that are absent stay as they are. Needs the scope `inference`.
         */
        patch: operations["editConversation"];
        trace?: never;
    };
    "/api/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Streams what happens on the server
         * @description Loads and unloads, changes of models, downloads, and requests to models: those of everybody for administrators, others' own with the scope `inference`. With the header `Last-Event-ID`, the stream goes on after that event. Needs the scope `models.read`.
         */
        get: operations["watch"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Tells whether the server can serve
         * @description Needs no token.
         */
        get: operations["health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the newest records of the server's log
         * @description Needs the scope `admin`.
         */
        get: operations["logs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/mcp": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the MCP servers of mcp.json
         * @description It connects to none. Needs the scope `mcp.plugin`, also on a site without authentication, and the gate `plugin_mcp`.
         */
        get: operations["listMCPServers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/mcp/{label}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns an MCP server of mcp.json with its tools
         * @description It connects to the server if need be. Needs the scope `mcp.plugin`, also on a site without authentication, and the gate `plugin_mcp`.
         */
        get: operations["getMCPServer"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists every usable model and its loaded instances
         * @description Needs the scope `models.read` or `inference`.
         */
        get: operations["listModels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/models/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns all that is known of a model
         * @description Needs the scope `models.read`.
         */
        get: operations["showModel"];
        put?: never;
        post?: never;
        /**
         * Deletes a model's files
         * @description Needs the scope `models.manage`.
         */
        delete: operations["deleteModel"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/models/companions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the files that belong to models and are none themselves
         * @description Projectors, drafters, adapters and the like. No list of models has them. Needs the scope `models.read`.
         */
        get: operations["listCompanions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/models/download": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the downloads
         * @description Needs the scope `models.read`.
         */
        get: operations["listDownloads"];
        put?: never;
        /**
         * Downloads a model
         * @description Needs the scope `models.manage`.
         */
        post: operations["download"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/models/download/{job_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the status of a download
         * @description Needs the scope `models.read`.
         */
        get: operations["getDownload"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/models/download/{job_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancels a download
         * @description Needs the scope `models.manage`.
         */
        post: operations["cancelDownload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/models/download/{job_id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Streams the progress of a download
         * @description Needs the scope `models.read`.
         */
        get: operations["watchDownload"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/models/download/{job_id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pauses a download
         * @description Needs the scope `models.manage`.
         */
        post: operations["pauseDownload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/models/download/{job_id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resumes a download
         * @description Needs the scope `models.manage`.
         */
        post: operations["resumeDownload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/models/download/status/{job_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the status of a download
         * @description Needs the scope `models.read`.
         */
        get: operations["getDownloadStatus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/models/load": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Loads a new instance of a model
         * @description Needs the scope `models.manage`.
         */
        post: operations["loadModel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/models/pin": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pins instances, or unpins them
         * @description A pinned instance isn't unloaded for other models, nor after `idle_ttl`. It stays pinned until it is unloaded. Needs the scope `models.manage`.
         */
        post: operations["pinModel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/models/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Searches the hubs for models that can be run on the server
         * @description Needs the scope `models.manage`.
         */
        get: operations["searchModels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/models/unload": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Unloads an instance
         * @description A busy instance finishes its requests first. Needs the scope `models.manage`.
         */
        post: operations["unloadModel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/models/variants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists what can be downloaded of a model, and what of it fits the server
         * @description Needs the scope `models.manage`.
         */
        get: operations["listVariants"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns this document
         * @description Needs any valid token.
         */
        get: operations["describe"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/ps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns what is loaded, or about to be
         * @description Needs the scope `models.read`.
         */
        get: operations["overview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the requests to models that are in progress, and the newest that have ended
         * @description The last to arrive first. Administrators see everybody's, others their own. Needs the scope `inference`.
         */
        get: operations["listRequests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/requests/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns a request, whole
         * @description Needs the scope `admin`.
         */
        get: operations["getRequest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/responses/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns a stored response, or the stream of one in the background
         * @description Needs the scope `inference`.
         */
        get: operations["getResponse"];
        put?: never;
        post?: never;
        /**
         * Deletes a stored response
         * @description Responses that continue it stay. Needs the scope `inference`.
         */
        delete: operations["deleteResponse"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/responses/{id}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approves or refuses a call of a tool
         * @description For an answer with tool_approval. The model gets a refusal as the call's result. Needs the scope `inference`.
         */
        post: operations["approveCall"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/responses/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancels an answer in the background, and returns what there is of it
         * @description What was generated is stored with the status incomplete; if nothing was, the response is discarded, and the answer is 404. Needs the scope `inference`.
         */
        post: operations["cancelResponse"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/root.crt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the root certificate of the server's own authority
         * @description Needs no token.
         */
        get: operations["rootCertificate"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runtime": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Installs an engine, unless one of its kind can be used already
         * @description As `lmcaddy runtime get`. With `Accept: text/event-stream`, events `runtime.progress` with `doing` and `percent` come before `runtime.end`, which has the answer, or `error`. Nothing is installed if the client disconnects. Needs the scope `models.manage`.
         */
        post: operations["getRuntime"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the configuration of this site
         * @description Needs any valid token.
         */
        get: operations["settings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the tokens
         * @description Needs the scope `admin`.
         */
        get: operations["listTokens"];
        put?: never;
        /**
         * Creates a token
         * @description Needs the scope `admin`.
         */
        post: operations["createToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revokes a token
         * @description Needs the scope `admin`.
         */
        delete: operations["revokeToken"];
        options?: never;
        head?: never;
        /**
         * Changes a token
         * @description Needs the scope `admin`.
         */
        patch: operations["changeToken"];
        trace?: never;
    };
    "/api/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the usage by day, owner and model
         * @description Administrators get everybody's, others their own. Needs any valid token.
         */
        get: operations["usage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/warm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists saved states of conversations
         * @description Needs the scope `models.manage`.
         */
        get: operations["listWarm"];
        put?: never;
        post?: never;
        /**
         * Deletes saved states of conversations
         * @description Needs the scope `models.manage`.
         */
        delete: operations["clearWarm"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Broken: {
            error: string;
            key: string;
            /** @description Relative to the models folder that it is in. */
            path: string;
        };
        CallDecision: {
            approved: boolean;
            call_id: string;
        };
        /** @description Of language models only. */
        Capabilities: {
            /** @description It takes recordings; absent if not. */
            audio?: boolean;
            reasoning?: components["schemas"]["ReasoningChoices"];
            trained_for_tool_use: boolean;
            /** @description It takes images. */
            vision: boolean;
        };
        /** @description The data of an event of a stream. Its type is the event's name, too. */
        ChatEvent: {
            model_instance_id: string;
            /** @description Only with store_partial or background. */
            response_id?: string;
            /** @constant */
            type: "chat.start";
        } | {
            model_instance_id: string;
            /** @constant */
            type: "model_load.start";
        } | {
            model_instance_id: string;
            progress: number;
            /** @constant */
            type: "model_load.progress";
        } | {
            load_time_seconds: number;
            model_instance_id: string;
            /** @constant */
            type: "model_load.end";
        } | {
            /** @enum {string} */
            type: "prompt_processing.start" | "prompt_processing.end" | "reasoning.start" | "reasoning.end" | "message.start" | "message.end";
        } | {
            progress: number;
            /** @constant */
            type: "prompt_processing.progress";
        } | {
            content: string;
            /** @enum {string} */
            type: "reasoning.delta" | "message.delta";
        } | {
            provider_info?: components["schemas"]["Provider"];
            tool: string;
            /** @constant */
            type: "tool_call.start";
        } | {
            arguments: Record<string, never>;
            provider_info?: components["schemas"]["Provider"];
            tool: string;
            /** @constant */
            type: "tool_call.arguments";
        } | {
            arguments: Record<string, never>;
            call_id: string;
            provider_info?: components["schemas"]["Provider"];
            tool: string;
            /** @constant */
            type: "tool_call.approval";
        } | {
            arguments: Record<string, never>;
            /**
             * @description Present if the tool reports an error of its own.
             * @constant
             */
            is_error?: true;
            output: string;
            provider_info?: components["schemas"]["Provider"];
            tool: string;
            /** @constant */
            type: "tool_call.success";
        } | {
            metadata: components["schemas"]["InvalidCallMetadata"];
            reason: string;
            /** @constant */
            type: "tool_call.failure";
        } | {
            error: components["schemas"]["ErrorObject"];
            /** @constant */
            type: "error";
        } | {
            result: components["schemas"]["ChatResponse"];
            /** @constant */
            type: "chat.end";
        };
        ChatInputItem: {
            content: string;
            /** @enum {unknown} */
            role?: "user" | null;
            /** @enum {string} */
            type: "message" | "text";
        } | {
            /** @description A PNG, JPEG, GIF, BMP or WebP file in base64. */
            data_url: string;
            /** @enum {unknown} */
            role?: "user" | null;
            /** @constant */
            type: "image";
        } | {
            /** @description A WAV, MP3 or FLAC file in base64. */
            data_url: string;
            /** @enum {unknown} */
            role?: "user" | null;
            /** @constant */
            type: "audio";
        };
        ChatOutputItem: components["schemas"]["TextItem"] | components["schemas"]["ToolCall"] | components["schemas"]["InvalidToolCall"];
        ChatRequest: {
            /**
             * @description true: the answer is made even if the client doesn't wait for it. Its stream can be had again, and it can be cancelled.
             * @default false
             */
            background: boolean | null;
            /** @description In tokens; used if the request loads the model. */
            context_length?: number | null;
            /** @description The model that drafts for this one. */
            draft_model?: string | null;
            frequency_penalty?: number | null;
            /** @description The user's message. */
            input: string | components["schemas"]["ChatInputItem"][];
            /** @description MCP servers whose tools the model may use. */
            integrations?: components["schemas"]["Integration"][] | null;
            logit_bias?: Record<string, never> | unknown[] | null;
            max_output_tokens?: number | null;
            min_p?: number | null;
            /** @description The model or the instance, by any of its names. */
            model?: string;
            /** @description The beginning of the answer, with which the model goes on without thinking. It is a part of the response. */
            prefill?: string | null;
            presence_penalty?: number | null;
            /** @description Fields that the request doesn't have are taken from that preset of the configuration. */
            preset?: string | null;
            /** @description The response to continue. */
            previous_response_id?: string | null;
            /**
             * @description One of the model's capabilities.reasoning.allowed_options.
             * @enum {string|null}
             */
            reasoning?: "off" | "low" | "medium" | "high" | "on" | null;
            repeat_penalty?: number | null;
            seed?: number | null;
            stop?: (string | null) | string[];
            /**
             * @description false: the response isn't kept, and can't be continued.
             * @default true
             */
            store: boolean | null;
            /**
             * @description true: if the client disconnects before the end, what was generated is kept, with the status incomplete. chat.start then has the response_id.
             * @default false
             */
            store_partial: boolean | null;
            /** @default false */
            stream: boolean | null;
            /** @description Applies until a later request replaces it; an empty one removes it. */
            system_prompt?: string | null;
            temperature?: number | null;
            /**
             * @description true: each call of a tool waits until it is approved or refused, at most an hour. Only with background.
             * @default false
             */
            tool_approval: boolean | null;
            top_k?: number | null;
            top_p?: number | null;
            /** @description Seconds of idleness after which the model is unloaded, if this request loads it; 0 or -1: never. */
            ttl?: number | null;
        };
        ChatResponse: {
            model_instance_id: string;
            /** @description In the order in which it was generated. */
            output: components["schemas"]["ChatOutputItem"][];
            /** @description Absent if the response isn't stored. */
            response_id?: string;
            stats: components["schemas"]["ChatStats"];
            /**
             * @description Present if a limit of tokens has cut the answer.
             * @constant
             */
            status?: "incomplete";
        };
        ChatStats: {
            /** @description Of the instance that has answered, in tokens. */
            context_length?: number;
            input_tokens: number;
            /** @description Present if the request waited for a load. */
            model_load_time_seconds?: number;
            reasoning_output_tokens: number;
            time_to_first_token_seconds: number;
            tokens_per_second: number;
            total_output_tokens: number;
        };
        Companion: {
            /** @description By which `draft_model` names a drafter; its file's name will do as well. */
            key: string;
            /** @description The keys of the models that it may belong to. */
            models: string[];
            /** @description Below the models folder. */
            path: string;
            /** @enum {string} */
            role: "projector" | "drafter" | "adapter" | "imatrix" | "vocabulary" | "vocoder" | "safetensors";
            size_bytes: number;
        };
        Companions: {
            companions: components["schemas"]["Companion"][];
        };
        /** @description What the configuration says, and what is in force where it says nothing. */
        Configuration: {
            engines: components["schemas"]["SettingsBlock"][];
            /** @description With which the server was started; absent: none. */
            file?: string;
            home: string;
            models: components["schemas"]["SettingsBlock"][];
            models_dirs: string[];
            /** @description Absent: none. */
            remotes?: components["schemas"]["SettingsBlock"][];
            settings: components["schemas"]["Setting"][];
            sites: components["schemas"]["Site"][];
        };
        Conversation: {
            /** Format: date-time */
            created_at: string | null;
            /**
             * @description The API that it was held with.
             * @enum {string}
             */
            dialect: "native" | "responses";
            /** @description The id of its first response. */
            id: string;
            /** @description The newest response, which a request continues. */
            last_response_id: string;
            model: string;
            /** @description A token's id, or a user of another authentication; empty: anybody. */
            owner: string;
            pinned: boolean;
            /** @description Those on the way to the newest. */
            responses?: components["schemas"]["StoredResponse"][];
            /**
             * @description That of its newest response.
             * @enum {string}
             */
            status: "completed" | "incomplete" | "failed" | "cancelled" | "in_progress";
            title: string;
            /** @description On the way to its newest response. */
            turns: number;
            /** Format: date-time */
            updated_at: string | null;
        };
        ConversationImport: {
            pinned?: boolean | null;
            responses: components["schemas"]["ImportedResponse"][];
            /** @description Absent or empty: the beginning of the first input. */
            title?: string;
        };
        Conversations: {
            /** @description The last updated first. */
            conversations: components["schemas"]["Conversation"][];
            /** @description null: these are the last ones. */
            next_cursor: string | null;
        };
        CreatedToken: {
            /** Format: date-time */
            created_at: string | null;
            /**
             * Format: date-time
             * @description null: never.
             */
            expires_at: string | null;
            id: string;
            /**
             * Format: date-time
             * @description null: never.
             */
            last_used_at: string | null;
            limits: components["schemas"]["TokenLimits"];
            models: string[];
            name: string;
            scopes: ("models.read" | "models.manage" | "inference" | "mcp.plugin" | "mcp.ephemeral" | "admin")[];
            /** @description The secret, which can't be had later. */
            token: string;
        };
        DeletedConversations: {
            deleted: number;
        };
        DeletedResponse: {
            /** @constant */
            deleted: true;
            response_id: string;
        };
        DownloadEvent: {
            error: components["schemas"]["ErrorObject"];
        } | {
            job: components["schemas"]["DownloadJob"];
            /** @enum {string} */
            type: "download.progress" | "download.paused" | "download.completed" | "download.failed";
        };
        DownloadJob: {
            bytes_per_second?: number;
            /** Format: date-time */
            completed_at?: string;
            downloaded_bytes: number;
            error?: components["schemas"]["ErrorObject"];
            /** Format: date-time */
            estimated_completion?: string;
            job_id: string;
            /** @description For other nodes of the cluster only. */
            keys?: string[];
            /** @description The model's key. */
            model: string;
            /** @description The node of the cluster that downloads it. */
            node?: string;
            /** @description Who began it; for administrators only. */
            owner?: string;
            /** Format: date-time */
            started_at: string;
            /** @enum {string} */
            status: "downloading" | "paused" | "completed" | "failed";
            total_size_bytes: number;
            /** @description Why it is being tried again. */
            trouble?: string;
            /** @description It waits for its turn: as many as max_downloads allows are being downloaded. */
            waiting?: boolean;
        };
        DownloadJobs: {
            /** @description The newest first. */
            jobs: components["schemas"]["DownloadJob"][];
            /** @description Nodes of the cluster that don't answer, so that their downloads are missing. */
            silent_nodes?: string[];
        };
        /** @description What would be downloaded. */
        DownloadPreview: {
            disk_free_bytes: number | null;
            files: components["schemas"]["PreviewFile"][];
            fits_disk: boolean;
            /** @description Of a download of the same files. */
            job_id?: string;
            /** @description That are still to be fetched. */
            left_bytes: number;
            /** @description The key that it will have, perhaps with @ and the quantization. */
            model: string;
            /** @description That other downloads have left to fetch. */
            other_downloads_bytes: number;
            quantization?: string;
            repository: string;
            /** @enum {string} */
            status: "estimated" | "downloading" | "paused" | "failed" | "already_downloaded";
            total_size_bytes: number;
            url?: string;
        };
        DownloadRequest: {
            /**
             * @description Nothing is downloaded. The response is a DownloadPreview.
             * @default false
             */
            estimate_only: boolean | null;
            /**
             * @description A name publisher/repository, perhaps with @ and a quantization, or the URL of a repository on a hub.
             * @example qwen/qwen3-4b
             * @example https://huggingface.co/unsloth/Qwen3-4B-GGUF
             */
            model: string;
            /**
             * @description Only with a URL.
             * @example Q4_K_M
             */
            quantization?: string | null;
        };
        DownloadStarted: {
            /** @description Absent if the files are there already. */
            job_id?: string;
            /** Format: date-time */
            started_at?: string;
            /** @enum {string} */
            status: "downloading" | "paused" | "completed" | "failed" | "already_downloaded";
            total_size_bytes?: number;
        };
        Error: {
            error: components["schemas"]["ErrorObject"];
        };
        ErrorObject: {
            /** @description A finer kind, for programs. */
            code?: string;
            /** @description A sentence that says what happened and what to do. */
            message: string;
            /** @description The field, the parameter or the place in the body that is concerned. */
            param?: string;
            /** @description What kind of error it is. docs/api/errors.md lists the types. */
            type: string;
        };
        /** @description The data of an event of GET /api/v1/events. */
        Event: {
            /** @description Those after the event that Last-Event-ID names follow. Otherwise, fetch anew what you show. */
            resumed: boolean;
            /** Format: date-time */
            time: string;
            /** @constant */
            type: "events.start";
        } | {
            /** @description null: unknown. */
            number: number | null;
            /** Format: date-time */
            time: string;
            /** @constant */
            type: "events.missed";
        } | {
            instance_id: string;
            /** @description At the end. */
            load_time_seconds?: number;
            model: string;
            /** @description At the end: where the model is, in words. Absent: nothing but the processor comes into question. */
            placement?: string;
            /** Format: date-time */
            time: string;
            /** @enum {string} */
            type: "model_load.start" | "model_load.end";
        } | {
            instance_id: string;
            model: string;
            progress: number;
            /** Format: date-time */
            time: string;
            /** @constant */
            type: "model_load.progress";
        } | {
            error: components["schemas"]["ErrorObject"];
            instance_id: string;
            model: string;
            /** Format: date-time */
            time: string;
            /** @constant */
            type: "model_load.failed";
        } | {
            instance_id: string;
            model: string;
            /** @description room, ttl, unload, settings, sharing, signal, hung or closing; crashed, which has no start. */
            reason: string;
            /** Format: date-time */
            time: string;
            /** @enum {string} */
            type: "model_unload.start" | "model_unload.end";
        } | {
            /** @description Absent: any of them. */
            model?: string;
            /** Format: date-time */
            time: string;
            /** @constant */
            type: "models.changed";
        } | {
            job: components["schemas"]["DownloadJob"];
            /** Format: date-time */
            time: string;
            /** @enum {string} */
            type: "download.start" | "download.progress" | "download.paused" | "download.completed" | "download.failed" | "download.cancelled";
        } | {
            request: components["schemas"]["Request"];
            /** Format: date-time */
            time: string;
            /** @enum {string} */
            type: "request.start" | "request.end";
        } | {
            record: components["schemas"]["LogRecord"];
            /** Format: date-time */
            time: string;
            /** @constant */
            type: "log.record";
        } | {
            error: components["schemas"]["ErrorObject"];
        };
        FoundModel: {
            downloaded: boolean;
            /** @description Of the last month. */
            downloads: number | null;
            fits_memory: boolean | null;
            format: string;
            /** @description Its publisher lets only some users download it. */
            gated: boolean;
            likes: number | null;
            /** @description The name by which it can be downloaded. */
            model: string;
            /** @description That would be downloaded; empty: unknown. */
            quantization: string;
            repository: string;
            size_bytes: number | null;
            /** Format: date-time */
            updated_at: string | null;
            url: string;
            well_known: boolean;
        };
        FoundModels: {
            models: components["schemas"]["FoundModel"][];
        };
        Health: {
            /** @description The same in full, for administrators. */
            details?: {
                code: string;
                message: string;
            }[];
            /** @description What is wrong; absent if nothing is. */
            reasons?: ("no_engine" | "gpu_unusable" | "store_unavailable" | "disk_full" | "model_failing" | "remote_unreachable" | "node_unreachable" | "queue_full" | "preloading" | "starting" | "shutting_down")[];
            /**
             * @description degraded: some requests can't be served; failing: none can.
             * @enum {string}
             */
            status: "ok" | "degraded" | "failing";
        };
        HourlyUsage: {
            /** @constant */
            by: "hour";
            /**
             * Format: date-time
             * @description The first hour.
             */
            from: string;
            /**
             * Format: date-time
             * @description The current hour.
             */
            to: string;
            total: components["schemas"]["UsageTotal"];
            /** @description Sorted by hour and model. Hours without requests are absent. */
            usage: {
                /**
                 * Format: date-time
                 * @description Its beginning.
                 */
                hour: string;
                input_tokens: number;
                model: string;
                output_tokens: number;
                requests: number;
            }[];
        };
        /** @description A request or a response. Secrets in it are masked. */
        HTTPMessage: {
            /** @description The body, or its beginning. */
            body: string;
            /** @description Of the whole body. */
            body_bytes: number;
            headers?: {
                [key: string]: string[];
            };
        };
        /** @description A response as a conversation has it. It gets a new id, and a status other than completed, incomplete and failed becomes one of these. */
        ImportedResponse: {
            /**
             * Format: date-time
             * @description Absent: now.
             */
            created_at?: string;
            input: components["schemas"]["StoredInputItem"][];
            model?: string;
            output: components["schemas"]["ChatOutputItem"][];
            /** @description One before it; absent: the one before it that has no response_id. The first one's is that of a stored response, or absent: then it begins a conversation. */
            previous_response_id?: string | null;
            /** @description By which those that continue it name it. */
            response_id?: string;
            status?: string;
            system_prompt?: string | null;
            usage?: components["schemas"]["StoredUsage"];
        };
        InstalledRuntime: {
            engine: string;
            variant: string;
            version: string;
        };
        Instance: {
            config: components["schemas"]["LoadConfig"];
            /** @description The model's key, key:2, or the identifier that the load chose. */
            id: string;
        };
        Integration: string | {
            /** @description Without it, all tools are offered. */
            allowed_tools?: string[] | null;
            id: string;
            /** @constant */
            type: "plugin";
        } | {
            allowed_tools?: string[] | null;
            headers?: {
                [key: string]: string;
            } | null;
            server_label: string;
            /** Format: uri */
            server_url: string;
            /** @constant */
            type: "ephemeral_mcp";
        };
        InvalidCallMetadata: {
            arguments?: Record<string, never>;
            provider_info?: components["schemas"]["Provider"];
            tool_name: string;
            /** @enum {string} */
            type: "invalid_name" | "invalid_arguments";
        };
        InvalidToolCall: {
            metadata: components["schemas"]["InvalidCallMetadata"];
            reason: string;
            /** @constant */
            type: "invalid_tool_call";
        };
        License: {
            id: string;
            name?: string;
            url?: string;
        };
        /** @description What an instance was loaded with. Fields that don't apply to the model are absent. */
        LoadConfig: {
            /** @description Tokens for one request. */
            context_length: number;
            eval_batch_size?: number;
            flash_attention?: boolean;
            num_experts?: number;
            offload_kv_cache_to_gpu?: boolean;
            /** @description Only if the load has chosen it. */
            parallel?: number;
        };
        Loaded: {
            instance_id: string;
            load_config?: components["schemas"]["LoadConfig"];
            load_time_seconds: number;
            /** @description Where the model is, in words, if a part of it, or all, is on the processor although there is a GPU. */
            placement?: string;
            /** @constant */
            status: "loaded";
            /** @enum {string} */
            type: "llm" | "embedding";
        };
        /** @description What a load would take and do. */
        LoadEstimate: {
            /** @description The machine's memory first, then GPUs with memory of their own. */
            devices: {
                /** @description Of all models together, less what other programs hold; 0: unlimited. */
                budget_bytes: number;
                name: string;
                /** @description 0 if it can't be loaded. */
                needed_bytes: number;
                /** @description By models. */
                taken_bytes: number;
            }[];
            /** @description It can be loaded, at once or after what the other fields say. */
            fits: boolean;
            /** @description Of the budget; null: unlimited. */
            free_bytes: number | null;
            load_config: components["schemas"]["LoadConfig"];
            memory: components["schemas"]["MemoryEstimate"];
            /** @description Of all models together in the machine's memory; null: unlimited. */
            memory_budget_bytes: number | null;
            model: string;
            /** @description Requests that it would answer at a time. */
            parallel: number;
            /** @description Where it would be, in words. Absent: there is no choice, or it can't be loaded. */
            placement?: string;
            /** @description Why it can't be loaded. */
            reason?: string;
            /** @description The size in which it would be loaded, if there is no room for all of it. */
            smaller?: {
                context_length: number;
                parallel: number;
                total_bytes: number;
            };
            /** @constant */
            status: "estimated";
            /** @enum {string} */
            type: "llm" | "embedding";
            /** @description Instances that would be restarted with fewer slots or a smaller cache. */
            would_shrink: string[];
            /** @description Instances. */
            would_unload: string[];
            /** @description The number of instances of models that the token may not use. */
            would_unload_others?: number;
            /** @description It would wait until requests have ended. */
            would_wait: boolean;
        };
        /** @description The data of an event of a load. */
        LoadEvent: {
            model_instance_id: string;
            /** @constant */
            type: "model_load.start";
        } | {
            model_instance_id: string;
            progress: number;
            /** @constant */
            type: "model_load.progress";
        } | {
            load_time_seconds: number;
            model_instance_id: string;
            result: components["schemas"]["Loaded"];
            /** @constant */
            type: "model_load.end";
        } | {
            error: components["schemas"]["ErrorObject"];
            /** @constant */
            type: "error";
        };
        LoadRequest: {
            /** @description Tokens for one request. */
            context_length?: number | null;
            /**
             * @description true: the response has load_config.
             * @default false
             */
            echo_load_config: boolean | null;
            /**
             * @description Nothing is loaded. The response is a LoadEstimate.
             * @default false
             */
            estimate_only: boolean | null;
            /** @description Prompt tokens that are evaluated at a time; a model has no more slots than that. 1 is raised to the 2 that llama-server needs. */
            eval_batch_size?: number | null;
            /** @description By default, the engine chooses. */
            flash_attention?: boolean | null;
            /** @description The id of the instance, by which requests can use it. */
            identifier?: string | null;
            /** @description The model, by any of its names. */
            model: string;
            /** @description Active experts of a mixture of experts. */
            num_experts?: number | null;
            /** @description false keeps the cache in the machine's memory. */
            offload_kv_cache_to_gpu?: boolean | null;
            /** @description Requests that the instance answers at a time. */
            parallel?: number | null;
            /** @description true: it isn't unloaded for other models. */
            pinned?: boolean | null;
            /** @description Seconds without a request after which it is unloaded; 0 or -1: never. */
            ttl?: number | null;
        };
        LogRecord: {
            fields: Record<string, never>;
            /** @description Names the place after it, for the header Last-Event-ID. */
            id: string;
            /** @enum {string} */
            level: "debug" | "info" | "warn" | "error";
            logger: string;
            message: string;
            /** Format: date-time */
            time: string | null;
        };
        Logs: {
            /** @description The oldest first. */
            records: components["schemas"]["LogRecord"][];
        };
        MCPServers: {
            servers: {
                /** @description For administrators; without arguments. */
                command?: string;
                /** @description Why it has failed. */
                error?: string;
                label: string;
                /** @description In progress. */
                sessions: number;
                /** @enum {string} */
                status: "connected" | "idle" | "failed";
                /** @description How many, if that is known. */
                tools?: number;
                /** @enum {string} */
                transport: "stdio" | "http" | "sse";
                /** @description For administrators; without secrets. */
                url?: string;
            }[];
        };
        MCPServerWithTools: {
            /** @description For administrators; without arguments. */
            command?: string;
            /** @description Why it has failed. */
            error?: string;
            label: string;
            /** @description In progress. */
            sessions: number;
            /** @enum {string} */
            status: "connected" | "idle" | "failed";
            /** @description None if it has failed. */
            tools: {
                description: string;
                input_schema: Record<string, never>;
                name: string;
                title?: string;
            }[];
            /** @enum {string} */
            transport: "stdio" | "http" | "sse";
            /** @description For administrators; without secrets. */
            url?: string;
        };
        /** @description Bytes on all devices of this machine together. */
        MemoryEstimate: {
            compute_bytes: number;
            /**
             * @description measured: by an earlier load.
             * @enum {string}
             */
            confidence: "measured" | "high" | "low";
            draft_model_bytes: number;
            /** @description The rest. */
            engine_bytes: number;
            kv_cache_bytes: number;
            projector_bytes: number;
            /** @description Filled gradually. */
            prompt_cache_bytes: number;
            total_bytes: number;
            weights_bytes: number;
        };
        Model: {
            /** @description Other names that requests may use. */
            aliases?: string[];
            /** @description Absent for embedding models. */
            architecture?: string;
            capabilities?: components["schemas"]["Capabilities"];
            /** @description What a request gets now, in tokens: the longest context of the loaded instances, or else that of a load. Absent if it is unknown. */
            context_length?: number;
            /** @description Of language models only. */
            description?: string | null;
            display_name: string;
            /** @description Why the engine, which is too old for it, can't load it, and what to do; absent if it can, as far as is known. */
            engine_problem?: string;
            /** @description gguf, mlx, or another one that a remote tells. Null: unknown. */
            format: string | null;
            /**
             * @description The model's name in every API.
             * @example qwen/qwen3-4b
             */
            key: string;
            loaded_instances: components["schemas"]["Instance"][];
            /** @description The model's maximum, in tokens. */
            max_context_length: number;
            /**
             * @description The number of parameters, such as 4B.
             * @example 4B
             */
            params_string: string | null;
            /** @description The remotes that have the model. */
            places?: {
                /** @description The name of the model on this remote alone. */
                instance_id: string;
                /** @description As far as the remote tells. */
                loaded: boolean;
                reachable: boolean;
                remote: string;
            }[];
            publisher: string;
            quantization: components["schemas"]["Quantization"] | null;
            /** @description Of its files. */
            size_bytes: number;
            /** @enum {string} */
            type: "llm" | "embedding";
            /** @description If the model is only on remotes that are such servers themselves: the ids of those that every request to it passes. */
            via?: string[];
        };
        /** @description A model as it is listed, and more. */
        ModelDetails: {
            /** @description Other names that requests may use. */
            aliases?: string[];
            /** @description Absent for embedding models. */
            architecture?: string;
            author: string | null;
            /** @description Of what it was made from. */
            base_model_url: string | null;
            capabilities?: components["schemas"]["Capabilities"];
            chat_template: string | null;
            /** @description Files beside it that aren't loaded with it, unless a load asks for one; absent if there are none. */
            companions?: components["schemas"]["Companion"][];
            /** @description What a request gets now, in tokens: the longest context of the loaded instances, or else that of a load. Absent if it is unknown. */
            context_length?: number;
            /** @description Of language models only. */
            description?: string | null;
            display_name: string;
            /** @description It makes embeddings. */
            embeddings: boolean;
            /** @description The engine that runs it. */
            engine: string;
            /** @description Of a mixture of experts. */
            experts?: {
                total: number;
                /** @description For each token. */
                used: number;
            };
            files: components["schemas"]["ModelFile"][];
            /** @description gguf, mlx, or another one that a remote tells. Null: unknown. */
            format: string | null;
            /**
             * @description The model's name in every API.
             * @example qwen/qwen3-4b
             */
            key: string;
            license: components["schemas"]["License"] | null;
            load: components["schemas"]["LoadEstimate"] | null;
            /** @description Why no load is possible. */
            load_error?: string;
            loaded_instances: components["schemas"]["Instance"][];
            /** @description The model's maximum, in tokens. */
            max_context_length: number;
            /** @description Their number. */
            parameters: number | null;
            /** @example 4B */
            params_string: string | null;
            /** @description The remotes that have the model. */
            places?: {
                /** @description The name of the model on this remote alone. */
                instance_id: string;
                /** @description As far as the remote tells. */
                loaded: boolean;
                reachable: boolean;
                remote: string;
            }[];
            publisher: string;
            quantization: components["schemas"]["Quantization"] | null;
            quantized_by: string | null;
            /** @description It ranks documents. */
            reranker: boolean;
            /** @description That was downloaded. */
            revision: string | null;
            settings: components["schemas"]["ModelSettings"];
            size_bytes: number;
            /** @description Where it was downloaded, or else its publisher's page. */
            source_url: string | null;
            /** @enum {string} */
            type: "llm" | "embedding";
            /** @description If the model is only on remotes that are such servers themselves: the ids of those that every request to it passes. */
            via?: string[];
            /** @description Only where it is known. */
            vocabulary_size?: number;
        };
        ModelFile: {
            /** @description Below the models folder. */
            path: string;
            /**
             * @description Its part.
             * @enum {string}
             */
            role: "model" | "projector";
            size_bytes: number;
        };
        Models: {
            /** @description Models whose files can't be used; absent if there are none. */
            broken?: components["schemas"]["Broken"][];
            models: components["schemas"]["Model"][];
        };
        /** @description The settings in force for a model. */
        ModelSettings: {
            /** @description Of its engine; for administrators only. */
            args?: string[];
            /** @description It has settings of its own. */
            configured: boolean;
            /** @description null: chosen by memory. */
            context_length: number | null;
            draft_model: string | null;
            /** @description null: chosen by memory. */
            parallel: number | null;
            pinned: boolean;
            preload: boolean;
            /** @description Of a model that a request has loaded; 0: it stays loaded. */
            ttl_seconds: number;
            /** @description States of its conversations are saved. */
            warm: boolean;
        };
        Offer: {
            /** @description By which it can be downloaded: with @ and a quantization, or with the field quantization if it is a URL. */
            model: string;
            repository: string;
            url: string;
            variants: {
                /** @description Nominal, of a weight. Absent: unknown. */
                bits?: number;
                downloaded: boolean;
                fits_disk: boolean;
                fits_memory: boolean;
                format: string;
                /** @description Empty: it has no name. */
                quantization: string;
                /** @description It is chosen if no quantization is given. */
                recommended: boolean;
                size_bytes: number;
            }[];
        };
        Overview: {
            /** @description Instances that will be restarted. */
            coming: {
                /**
                 * Format: date-time
                 * @description Not before.
                 */
                at: string;
                id: string;
                model: string;
                reason?: string;
            }[];
            /** @description What runs models, the CPU first. */
            devices: {
                /** @description That all instances may take together. Absent: unlimited, or it has no memory of its own. */
                budget_bytes?: number;
                /** @description By the instances whose devices are known. */
                claimed_bytes: number;
                /** @description Absent: unknown. */
                free_bytes?: number;
                /** @description By other programs, as far as that is known. */
                held_bytes?: number;
                /** @enum {string} */
                kind: "cpu" | "gpu";
                name: string;
                total_bytes: number;
                /** @description It shares the machine's memory. */
                unified?: boolean;
            }[];
            /** @description Models that have failed and haven't worked since. */
            failing: {
                /** @description In a row. */
                failures: number;
                model: string;
                /** @description Of the last failure. */
                reason: string;
                /**
                 * Format: date-time
                 * @description Not before.
                 */
                retry_at: string;
            }[];
            /** @description GPUs that engines can't use as they should, with what to do. Only for administrators. */
            faults?: string[];
            instances: components["schemas"]["OverviewInstance"][];
            limits: {
                /** @description 0: unlimited. */
                max_loaded: number;
                memory_budget_bytes: number;
                /** @description Waiting requests for each model; 0: unlimited. */
                queue: number;
            };
            /** @description Of the machine's memory, by all instances, counted against the budget. */
            memory_bytes: number;
            /** @description The nodes of the cluster, by name. Absent if there is none. */
            nodes?: {
                /** @description Why it is unreachable. */
                error?: string;
                /** @description How many requests its instances are answering. */
                in_use: number;
                /** @description How many instances it has. */
                loaded: number;
                /** @description 0: unlimited. */
                memory_budget_bytes: number;
                memory_bytes: number;
                name: string;
                /** @description It is the one that answers. */
                self: boolean;
                /** Format: date-time */
                started_at?: string;
                /** @enum {string} */
                status: "connected" | "unreachable" | "leaving" | "late";
                /** @description For administrators only. */
                url?: string;
                version?: string;
                /** @description How many requests wait there. */
                waiting: number;
            }[];
            /** @description The servers that this one reaches. Absent if there are none. */
            remotes?: {
                /** @description Why it is unreachable. */
                error?: string;
                kind?: string;
                /** @description How many it has, or had when it was reached. */
                models: number;
                name: string;
                prefer: number;
                /**
                 * Format: date-time
                 * @description When the status began.
                 */
                since?: string;
                /** @enum {string} */
                status: "connecting" | "connected" | "unreachable";
                /** @description For administrators only. */
                url?: string;
                version?: string;
            }[];
            /** Format: date-time */
            time: string;
            /** @description Waiting requests, by the model's key. */
            waiting: {
                [key: string]: number;
            };
        };
        OverviewInstance: {
            address?: string;
            /** @description Tokens for one request. */
            context_length: number;
            /** @description How memory_bytes are spread over devices. Absent if that isn't known, as during a load. */
            devices?: {
                memory_bytes: number;
                name: string;
            }[];
            draft_model?: string;
            engine?: string;
            engine_version?: string;
            /**
             * Format: date-time
             * @description When it is unloaded if it stays idle.
             */
            expires_at?: string;
            id: string;
            /** @description Slots in use. */
            in_use: number;
            /**
             * Format: date-time
             * @description The end of the last request, or the load.
             */
            last_used?: string;
            load_time_seconds?: number;
            /** Format: date-time */
            loaded_at?: string;
            /** @description Counted against the budgets, on all devices together. */
            memory_bytes: number;
            model: string;
            /** @description Who loaded it; for that owner and administrators. */
            owner?: string;
            /** @description For administrators, as the next three and engine_version. */
            pid?: number;
            pinned: boolean;
            /** @description Where the model is, in words. Absent: nothing but the processor comes into question, or it isn't loaded yet. */
            placement?: string;
            /** @description Of the load. */
            progress?: number;
            /** @description Why it is draining or stopping. */
            reason?: string;
            /** @description That it is on. It takes no memory here then. */
            remote?: string;
            /** @description It will be restarted with other settings once it is idle. */
            renewing: boolean;
            /** @description Of its process, measured within the last five seconds. */
            resident_memory_bytes?: number;
            sandbox?: string;
            slots: number;
            /** @description It has fewer slots, or a smaller prompt cache, than it would have alone. */
            smaller?: boolean;
            /** @description A part of it, or all, is on the processor although there is a GPU: it is many times slower. */
            split?: boolean;
            /** @enum {string} */
            status: "starting" | "loading" | "ready" | "draining" | "stopping" | "unreachable";
            /** @description How long it may be idle; 0: it stays loaded. */
            ttl_seconds: number;
        };
        Pinned: {
            instance_ids: string[];
            model: string;
            pinned: boolean;
        };
        PinRequest: {
            /** @description One instance. */
            instance_id?: string | null;
            /** @description All instances of a model, by any of its names. */
            model?: string | null;
            pinned: boolean;
        };
        PreviewFile: {
            /** @description Below the models folder. */
            path: string;
            size_bytes: number;
        };
        Provider: {
            plugin_id?: string;
            server_label?: string;
            /** @enum {string} */
            type: "plugin" | "ephemeral_mcp";
        };
        Quantization: {
            bits_per_weight: number | null;
            /** @example Q4_K_M */
            name: string | null;
        };
        /** @description Absent if the model offers no choice. */
        ReasoningChoices: {
            allowed_options: ("off" | "low" | "medium" | "high" | "on")[];
            /** @enum {string|null} */
            default: "off" | "low" | "medium" | "high" | "on" | null;
        };
        RemovedModel: {
            key: string;
        };
        /** @description What is known of a request. Figures that don't apply are absent. */
        Request: {
            /** Format: date-time */
            arrived_at: string;
            cached_tokens?: number;
            dialect: string;
            /** @description Absent while it is being answered. */
            duration_seconds?: number;
            id: string;
            input_tokens?: number;
            /** @description GET /api/v1/requests/{id} has it whole. */
            inspected?: boolean;
            instance?: string;
            load_seconds?: number;
            method: string;
            model?: string;
            /** @description ok, cancelled, or the kind of the error. */
            outcome?: string;
            output_tokens?: number;
            owner?: string;
            path: string;
            queue_seconds?: number;
            restore_seconds?: number;
            status?: number;
            stream?: boolean;
            time_per_output_token_seconds?: number;
            time_to_first_token_seconds?: number;
            token_name?: string;
            tool_calls?: number;
        };
        Requests: {
            /** @description The newest first. */
            requests: components["schemas"]["Request"][];
        };
        RevokedToken: {
            id: string;
            /** @constant */
            revoked: true;
        };
        Setting: {
            name: string;
            /**
             * @description Where the value comes from.
             * @enum {string}
             */
            source: "file" | "environment" | "default";
            value: string;
        };
        Settings: {
            allow: {
                ephemeral_mcp: boolean;
                plugin_mcp: boolean;
                raw_grammar: boolean;
                remote_mcp: boolean;
            };
            /** @description This site requires a token. */
            authentication: boolean;
            configuration?: components["schemas"]["Configuration"];
            cors: string[];
            /** @description Of the server's process: by it, servers that are remotes of each other notice that. */
            id: string;
            /** @description Whose request it is. null: it has no valid token, and no other authentication has named a user. */
            identity: {
                /** @description Keys of models, in which * matches any characters but a slash; none: all. */
                models: string[];
                name: string;
                scopes: ("models.read" | "models.manage" | "inference" | "mcp.plugin" | "mcp.ephemeral" | "admin")[];
            } | null;
            /** @description 0: models stay loaded. */
            idle_ttl_seconds: number;
            jit: boolean;
            /** @enum {string} */
            list_models: "loaded" | "all";
            max_body_bytes: number;
            /** @description 0: as many as memory holds. */
            max_loaded: number;
            presets: {
                /** @description For administrators: what the preset adds to requests. */
                fields?: Record<string, never>;
                name: string;
            }[];
            /** @description 0: no bound. */
            queue: number;
            /** @enum {string} */
            reasoning_field: "reasoning" | "reasoning_content";
            /** @description Of the server; empty: unknown. */
            version: string;
        };
        SettingsBlock: {
            name: string;
            settings: components["schemas"]["Setting"][];
        };
        Site: {
            addresses: string[];
            authentication: boolean;
            cors: string[];
            /** @description None: all. */
            dialects: string[];
            /** @description None: all. */
            hosts: string[];
            max_body_bytes: number;
            /** @description Browsers get a page at the path /. */
            page: boolean;
            /** @description Other machines can connect. */
            reachable: boolean;
            server: string;
            tls: boolean;
        };
        StoredInputItem: {
            content: string;
            /**
             * @description Absent: the user.
             * @enum {string}
             */
            role?: "assistant" | "developer";
            /** @constant */
            type: "message";
        } | {
            data_url: string;
            /** @enum {string} */
            type: "image" | "audio";
        } | {
            content: string;
            /** @enum {string} */
            type: "tool_result" | "reasoning" | "summary";
        } | components["schemas"]["ToolCall"] | components["schemas"]["InvalidToolCall"];
        StoredResponse: {
            /** Format: date-time */
            created_at: string;
            input: components["schemas"]["StoredInputItem"][];
            model: string;
            output: components["schemas"]["ChatOutputItem"][];
            previous_response_id?: string;
            response_id: string;
            /** @enum {string} */
            status: "completed" | "incomplete" | "failed" | "cancelled" | "in_progress";
            system_prompt?: string;
            usage: components["schemas"]["StoredUsage"];
        };
        StoredUsage: {
            /** @description Of input_tokens, those that the engine had cached. */
            cached_input_tokens: number;
            /** @description Of the instance that has answered, in tokens. */
            context_length?: number;
            input_tokens: number;
            output_tokens: number;
            reasoning_output_tokens: number;
            time_to_first_token_seconds?: number;
            tokens_per_second?: number;
        };
        /** @description A summary is in conversations of the Responses API only. */
        TextItem: {
            content: string;
            /** @enum {string} */
            type: "message" | "reasoning" | "summary";
        };
        Token: {
            /** Format: date-time */
            created_at: string | null;
            /**
             * Format: date-time
             * @description null: never.
             */
            expires_at: string | null;
            id: string;
            /**
             * Format: date-time
             * @description null: never.
             */
            last_used_at: string | null;
            limits: components["schemas"]["TokenLimits"];
            models: string[];
            name: string;
            scopes: ("models.read" | "models.manage" | "inference" | "mcp.plugin" | "mcp.ephemeral" | "admin")[];
        };
        /** @description Fields that are absent keep their value. */
        TokenChange: {
            /**
             * Format: date-time
             * @description null: never.
             */
            expires_at?: string | null;
            limits?: {
                concurrent_requests?: number | null;
                requests_per_minute?: number | null;
                tokens_per_day?: number | null;
            } | null;
            /** @description Keys, in which * matches any characters but a slash; none means all models. */
            models?: string[] | null;
            name?: string;
            scopes?: ("models.read" | "models.manage" | "inference" | "mcp.plugin" | "mcp.ephemeral" | "admin")[] | null;
        };
        /** @description An absent limit is none. */
        TokenLimits: {
            concurrent_requests?: number;
            requests_per_minute?: number;
            tokens_per_day?: number;
        };
        TokenRequest: {
            /**
             * Format: date-time
             * @description null: never.
             */
            expires_at?: string | null;
            limits?: {
                concurrent_requests?: number | null;
                requests_per_minute?: number | null;
                tokens_per_day?: number | null;
            } | null;
            /** @description Keys, in which * matches any characters but a slash; none means all models. */
            models?: string[] | null;
            name: string;
            scopes?: ("models.read" | "models.manage" | "inference" | "mcp.plugin" | "mcp.ephemeral" | "admin")[] | null;
        };
        Tokens: {
            tokens: components["schemas"]["Token"][];
        };
        ToolCall: {
            arguments: Record<string, never>;
            /**
             * @description Present if the tool reports an error of its own, or couldn't be called.
             * @constant
             */
            is_error?: true;
            /** @description What the tool returned, or why it couldn't be called. */
            output: string;
            provider_info?: components["schemas"]["Provider"];
            tool: string;
            /** @constant */
            type: "tool_call";
        };
        Unloaded: {
            instance_id: string;
        };
        UnloadRequest: {
            instance_id: string;
        };
        UpstreamExchange: {
            /** Format: date-time */
            began_at: string;
            duration_seconds?: number;
            instance: string;
            path: string;
            request: components["schemas"]["HTTPMessage"];
            response: components["schemas"]["HTTPMessage"];
            status?: number;
        };
        Usage: {
            /** Format: date */
            from: string;
            /** Format: date */
            to: string;
            usage: components["schemas"]["UsageOfDay"][];
        };
        UsageOfDay: {
            /**
             * Format: date
             * @description In UTC.
             */
            day: string;
            input_tokens: number;
            model: string;
            output_tokens: number;
            /** @description A token's id, or a user of another authentication; empty: anybody. */
            owner: string;
            requests: number;
        };
        /** @description Of one day, model or owner. */
        UsageSum: {
            /** Format: date */
            day?: string;
            input_tokens: number;
            model?: string;
            /** @description Of the token; absent if it was revoked. */
            name?: string;
            output_tokens: number;
            /** @description A token's id, or a user of another authentication; empty: anybody. */
            owner?: string;
            requests: number;
            /** @description The token's limit; absent: none. */
            tokens_per_day?: number;
            tokens_today?: number;
        };
        UsageSums: {
            /** @enum {string} */
            by: "day" | "model" | "token";
            /** Format: date */
            from: string;
            /** Format: date */
            to: string;
            total: components["schemas"]["UsageTotal"];
            usage: components["schemas"]["UsageSum"][];
        };
        UsageTotal: {
            input_tokens: number;
            output_tokens: number;
            requests: number;
        };
        WarmCleared: {
            deleted: number;
            size_bytes: number;
        };
        /** @description What saved states of a model's conversations cost on this machine, as measured. */
        WarmRates: {
            bytes_per_token: number;
            model: string;
            /** @description How many tokens a prompt must have for its state to be kept; null: to process a prompt again is always faster, so none are kept. */
            pays_from_tokens: number | null;
            /** @description That the engine processes. */
            prompt_tokens_per_second: number;
            /** @description That are restored, or saved if none were restored yet. */
            restore_bytes_per_second: number;
        };
        WarmState: {
            /** Format: date-time */
            created_at: string | null;
            /** Format: date-time */
            last_used_at: string | null;
            model: string;
            /** @description A token's id, or a user of another authentication; empty: anybody. */
            owner: string;
            size_bytes: number;
            tokens: number;
        };
        WarmStates: {
            /** @description Of the models of which all was measured; absent without any. */
            rates?: components["schemas"]["WarmRates"][];
            states: components["schemas"]["WarmState"][];
        };
        WholeRequest: {
            /** Format: date-time */
            arrived_at: string;
            cached_tokens?: number;
            dialect: string;
            /** @description Absent while it is being answered. */
            duration_seconds?: number;
            id: string;
            input_tokens?: number;
            instance?: string;
            load_seconds?: number;
            method: string;
            model?: string;
            /** @description ok, cancelled, or the kind of the error. */
            outcome?: string;
            output_tokens?: number;
            owner?: string;
            path: string;
            queue_seconds?: number;
            request: components["schemas"]["HTTPMessage"];
            response: components["schemas"]["HTTPMessage"];
            restore_seconds?: number;
            status?: number;
            stream?: boolean;
            time_per_output_token_seconds?: number;
            time_to_first_token_seconds?: number;
            token_name?: string;
            tool_calls?: number;
            /** @description Requests to engines. */
            upstream: components["schemas"]["UpstreamExchange"][];
        };
    };
    responses: {
        /** @description An error. */
        Error: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    chat: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChatRequest"];
            };
        };
        responses: {
            /** @description The answer. With `stream`, events, whose data have the type ChatEvent. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChatResponse"] | components["schemas"]["StoredResponse"];
                    "text/event-stream": components["schemas"]["ChatEvent"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listConversations: {
        parameters: {
            query?: {
                /** @description The next_cursor of an earlier answer. */
                cursor?: string;
                /** @description How many. Default: 20. */
                limit?: number;
                /** @description Whose conversations; for administrators. Default: one's own. */
                owner?: string;
                /** @description true: only pinned conversations. */
                pinned?: boolean;
                /** @description A text in the title, or in a message, thought or call of any branch. Upper and lower case are the same. */
                query?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The conversations. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conversations"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    importConversation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ConversationImport"];
            };
        };
        responses: {
            /** @description The conversation, without its responses. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conversation"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    deleteConversations: {
        parameters: {
            query: {
                /** @description Whose conversations; for administrators. Default: one's own. */
                owner?: string;
                /** @description The time. */
                updated_before: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description They are deleted. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedConversations"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getConversation: {
        parameters: {
            query?: {
                /** @description true: the responses of all branches, in the order in which they were created, at most the newest 1000. Default: only those on the way to the newest. */
                branches?: boolean;
                /** @description Whose conversations; for administrators. Default: one's own. */
                owner?: string;
                /** @description false: without its responses. */
                responses?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a conversation, or its beginning. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The conversation. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conversation"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    deleteConversation: {
        parameters: {
            query?: {
                /** @description Whose conversations; for administrators. Default: one's own. */
                owner?: string;
            };
            header?: never;
            path: {
                /** @description The id of a conversation, or its beginning. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is deleted. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedConversations"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    editConversation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a conversation, or its beginning. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    pinned?: boolean | null;
                    /** @description At most 80 characters are kept. Empty: the beginning of the first message again. */
                    title?: string;
                };
            };
        };
        responses: {
            /** @description The conversation, without its responses. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conversation"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    watch: {
        parameters: {
            query?: {
                /** @description The lowest level of records. Default: info. */
                level?: "debug" | "info" | "warn" | "error";
                /** @description Types of events with commas; a type may end in *. Default: all but log.record, which administrators get if they name it. */
                types?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events, whose data have the type Event, until the client disconnects. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["Event"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    health: {
        parameters: {
            query?: {
                /** @description true: failing until models with preload are loaded. */
                ready?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It can. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            /** @description It can't. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    logs: {
        parameters: {
            query?: {
                /** @description true: also the lines that engines write. */
                engine?: boolean;
                /** @description true: a stream, which goes on with new ones. */
                follow?: boolean;
                /** @description Only those about this instance. */
                instance?: string;
                /** @description Only those of this level or above it. */
                level?: "debug" | "info" | "warn" | "error";
                /** @description How many. Default: 100. */
                limit?: number;
                /** @description Only those about this model. */
                model?: string;
                /** @description Only those about the request with this id. */
                request?: string;
                /** @description Only those from this time on. */
                since?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The records. With `follow`, events, whose data have the type LogRecord. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Logs"];
                    "text/event-stream": components["schemas"]["LogRecord"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listMCPServers: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The servers. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MCPServers"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getMCPServer: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The label of the server. */
                label: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The server, perhaps with the reason why it can't be used. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MCPServerWithTools"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listModels: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The models. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Models"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    showModel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description A name of the model, or the id of an instance. It may contain slashes. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The model. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelDetails"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    deleteModel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description A name of the model. It may contain slashes. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description They are deleted. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RemovedModel"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listCompanions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Sorted by key. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Companions"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listDownloads: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The downloads. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DownloadJobs"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    download: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DownloadRequest"];
            };
        };
        responses: {
            /** @description The download has begun, or the files are there already. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DownloadStarted"] | components["schemas"]["DownloadPreview"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getDownload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the download. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The download. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DownloadJob"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    cancelDownload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the download. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The download. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DownloadJob"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    watchDownload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the download. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events, whose data have the type DownloadEvent: the current state, and each change until the download ends. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["DownloadEvent"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    pauseDownload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the download. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The download. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DownloadJob"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    resumeDownload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the download. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The download. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DownloadJob"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getDownloadStatus: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the download. */
                job_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The download. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DownloadJob"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    loadModel: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LoadRequest"];
            };
        };
        responses: {
            /** @description The instance is ready. With the header `Accept: text/event-stream`, events, whose data have the type LoadEvent. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Loaded"] | components["schemas"]["LoadEstimate"];
                    "text/event-stream": components["schemas"]["LoadEvent"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    pinModel: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PinRequest"];
            };
        };
        responses: {
            /** @description They are pinned, or no longer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pinned"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    searchModels: {
        parameters: {
            query: {
                /** @description The most results. Default: 10. */
                limit?: number;
                /** @description Words that the models' names contain. */
                query: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Well-known models first, then the most downloaded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FoundModels"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    unloadModel: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UnloadRequest"];
            };
        };
        responses: {
            /** @description It is unloaded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Unloaded"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listVariants: {
        parameters: {
            query: {
                /** @description A name publisher/repository, an identifier of the catalog, or the URL of a repository on a hub. */
                model: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The variants, best first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Offer"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    describe: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An OpenAPI document. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            default: components["responses"]["Error"];
        };
    };
    overview: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The instances, and the models that have failed or are waited for. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Overview"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listRequests: {
        parameters: {
            query?: {
                /** @description How many. Default: 100. */
                limit?: number;
                /** @description Only requests to a model, by any of its names. */
                model?: string;
                /** @description Only requests with an outcome: ok, cancelled, or the kind of an error. */
                outcome?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The requests. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Requests"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getRequest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The request's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WholeRequest"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getResponse: {
        parameters: {
            query?: {
                /** @description true: the events of an answer in the background, from the first one on. They are kept for 10 minutes after its end. */
                stream?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of a response. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The response, or its events. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredResponse"];
                    "text/event-stream": components["schemas"]["ChatEvent"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    deleteResponse: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a response. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is deleted. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedResponse"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    approveCall: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a response. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CallDecision"];
            };
        };
        responses: {
            /** @description What was decided. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CallDecision"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    cancelResponse: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a response. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The response as it has ended. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredResponse"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    rootCertificate: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The certificate in PEM. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-x509-ca-cert": string;
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getRuntime: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @enum {string} */
                    engine: "llama.cpp" | "mlx-lm";
                };
            };
        };
        responses: {
            /** @description It can be used. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InstalledRuntime"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    settings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The configuration. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Settings"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listTokens: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tokens, without their secrets. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tokens"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TokenRequest"];
            };
        };
        responses: {
            /** @description The token, with its secret. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedToken"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    revokeToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the token. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is revoked. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RevokedToken"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    changeToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the token. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TokenChange"];
            };
        };
        responses: {
            /** @description The token. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Token"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    usage: {
        parameters: {
            query?: {
                /** @description What to sum up by. The response is then UsageSums, or with hour, HourlyUsage. */
                by?: "hour" | "day" | "model" | "token";
                /** @description The first day, in UTC. Default: 29 days before the last one. */
                from?: string;
                /** @description A number of days, such as 7d, in place of from and to. Today counts as one. With by=hour: of hours, such as 24h (the default), up to 7d. */
                since?: string;
                /** @description The last day. Default: today. */
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The usage. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Usage"] | components["schemas"]["UsageSums"] | components["schemas"]["HourlyUsage"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listWarm: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The states. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WarmStates"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    clearWarm: {
        parameters: {
            query?: {
                /** @description Only those of this model. */
                model?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description They are deleted. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WarmCleared"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
}
