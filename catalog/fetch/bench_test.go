package fetch

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
)

// BenchmarkThroughput downloads a large file over loopback, and compares the time with curl's, which doesn't verify the file.
// With connections of limited speed, like those of hubs, parallel ranges are faster.
//
//	go test ./catalog/fetch -run '^$' -bench Throughput -benchtime 3x
func BenchmarkThroughput(b *testing.B) {
	const size = 512 << 20
	path := filepath.Join(b.TempDir(), "big-Q4_K_M.gguf")
	fill(b, path, size)
	content, err := fakehub.Disk(path)
	if err != nil {
		b.Fatal(err)
	}
	server := fakehub.Start(b)
	server.Add("acme/big", fakehub.Files{"big-Q4_K_M.gguf": content})
	address := server.URL + "/acme/big/resolve/main/big-Q4_K_M.gguf"
	for _, held := range []int64{0, 40 << 20} {
		server.Mend()
		speed := "unbounded"
		if held > 0 {
			server.Fault(fakehub.Fault{Path: "/cdn/", BytesPerSecond: held})
			speed = fmt.Sprintf("%dMiB-per-connection", held>>20)
		}
		var curl time.Duration
		for _, lanes := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("%s/lanes=%d", speed, lanes), func(b *testing.B) {
				var ours, theirs time.Duration
				for b.Loop() {
					ours += download(b, server, lanes)
					if held == 0 || curl == 0 {
						curl = curled(b, address)
					}
					theirs += curl
				}
				b.SetBytes(size)
				b.ReportMetric(float64(size>>20)/(theirs.Seconds()/float64(b.N)), "curl-MiB/s")
				b.ReportMetric(float64(size>>20)/(ours.Seconds()/float64(b.N)), "MiB/s")
				b.ReportMetric(theirs.Seconds()/ours.Seconds(), "of-curl")
			})
		}
	}
}

func fill(b *testing.B, path string, size int) {
	b.Helper()
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	source := rand.NewChaCha8([32]byte{1})
	block := make([]byte, 1<<20)
	for range size >> 20 {
		_, _ = source.Read(block)
		if _, err := f.Write(block); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
}

// download downloads the repository into a new home and returns the time until the job is completed.
func download(b *testing.B, server *fakehub.Hub, lanes int) time.Duration {
	b.Helper()
	home := b.TempDir()
	jobs, err := Open(Options{
		Models: filepath.Join(home, "models"), State: filepath.Join(home, "downloads"), Hubs: []hub.Config{{URL: server.URL}},
		Parallel: lanes, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(home) }()
	defer func() { _ = jobs.Close() }()
	begun := time.Now()
	job, err := jobs.Start(b.Context(), Request{Model: server.URL + "/acme/big"})
	if err != nil {
		b.Fatal(err)
	}
	updates, stop, err := jobs.Subscribe(job.ID)
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	for job = range updates {
	}
	if job.State != Completed {
		b.Fatalf("%+v", job)
	}
	return time.Since(begun)
}

// curled returns the time that curl takes for the file.
func curled(b *testing.B, address string) time.Duration {
	b.Helper()
	to := filepath.Join(b.TempDir(), "curl")
	defer func() { _ = os.Remove(to) }()
	begun := time.Now()
	if text, err := exec.CommandContext(b.Context(), "curl", "-sSfL", "-o", to, address).CombinedOutput(); err != nil {
		b.Fatalf("curl: %v %s", err, text)
	}
	return time.Since(begun)
}
