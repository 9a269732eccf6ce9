package store

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

func TestLatency(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "x.db")})
	if err != nil {
		t.Fatal(err)
	}
	counts := func() (reads, writes uint64, l Latency) {
		l = s.Latency()
		reads, _ = l.Reads.Cumulative()
		writes, _ = l.Writes.Cumulative()
		return reads, writes, l
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.Token(t.Context(), "unknown"); err == nil {
		t.Error("a token that nobody has made")
	}
	if err := s.AddUsage(t.Context(), map[HourKey]UsageCount{{Hour: 24, Owner: "o", Model: "m"}: {Requests: 1}}); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Ping(cancelled); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	reads, writes, l := counts()
	if reads != 3 || writes != 1 || l.FailedReads+l.FailedWrites != 0 || l.Reads.Sum <= 0 || l.Writes.Sum <= 0 {
		t.Errorf("%d reads, %d writes: %+v", reads, writes, l)
	}
	total := NewLatency()
	total.Add(l)
	total.Add(l)
	if n, _ := total.Writes.Cumulative(); n != 2 {
		t.Errorf("%d writes of two stores", n)
	}
	if err := s.db.(*sqliteFile).reading.Close(); err != nil { // beneath the store, whose writer still tidies up
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err == nil {
		t.Error("a closed database answers")
	}
	if _, _, l := counts(); l.FailedReads != 1 {
		t.Errorf("%+v", l)
	}
	_ = s.Close()
}
