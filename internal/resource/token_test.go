package resource

import (
	"encoding/json"
	"testing"
	"time"
)

func TestTime_JSON(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 1, 31, 13, 0, 0, 120_400_000, time.FixedZone("CET", 3600))
	token := Token{Scopes: []string{}, Models: []string{}, Created: At(at), Expires: At(time.Time{})}
	text, err := json.Marshal(token)
	const want = `{"id":"","name":"","scopes":[],"models":[],"limits":{},"created_at":"2027-01-31T12:00:00.120Z","expires_at":null,"last_used_at":null}`
	if err != nil || string(text) != want {
		t.Errorf("%v: %s, want %s", err, text, want)
	}
	var read Token
	if err := json.Unmarshal(text, &read); err != nil || !read.Created.Equal(at.Truncate(time.Millisecond)) || read.Expires != nil {
		t.Errorf("%v: %+v", err, read)
	}
}
