package resource

// Health is the response to GET /api/v1/health.
type Health struct {
	Status  string    `json:"status"`            // ok, degraded: some requests can't be served, or failing: none can
	Reasons []string  `json:"reasons,omitempty"` // codes, each once
	Details []Trouble `json:"details,omitempty"` // for administrators alone
}

// Trouble is a reason in full.
type Trouble struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}
