package request

// SystemPrompt is the field of defaults that is no field of requests: a system message that comes before all others.
const SystemPrompt = "system_prompt"
