package resource

import "encoding/json"

// Logs is the response to GET /api/v1/logs.
type Logs struct {
	Records []LogRecord `json:"records"` // oldest first
}

// LogRecord is an entry of the server's log.
type LogRecord struct {
	ID      string          `json:"id"` // names the place after it
	Time    *Time           `json:"time"`
	Level   string          `json:"level"` // debug, info, warn or error
	Logger  string          `json:"logger"`
	Message string          `json:"message"`
	Fields  json.RawMessage `json:"fields"` // an object
}
