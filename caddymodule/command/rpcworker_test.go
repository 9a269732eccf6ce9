package command

import (
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/supervisor"
)

func TestRPCWorker_Address(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		listen      string
		allowPublic bool
		host        string
		port        int
		complaint   string
	}{
		{listen: "127.0.0.1", host: "127.0.0.1", port: 50052},
		{listen: "10.0.0.3:5", host: "10.0.0.3", port: 5},
		{listen: "localhost:5", host: "127.0.0.1", port: 5},
		{listen: "8.8.8.8", complaint: "8.8.8.8 isn't a private address"},
		{listen: "8.8.8.8", allowPublic: true, host: "8.8.8.8", port: 50052},
		{listen: "0.0.0.0:5", complaint: "0.0.0.0 isn't a private address"},
		{listen: "0.0.0.0:5", allowPublic: true, host: "0.0.0.0", port: 5},
		{listen: "::1", complaint: "no IPv6"},
		{listen: "[::1]:5", complaint: "no IPv6"},
		{listen: "10.0.0.3:0", complaint: `"0" is not a port`},
		{listen: "10.0.0.3:http", complaint: `"http" is not a port`},
		{listen: "", complaint: "neither an IPv4 address"},
	} {
		f := rpcWorkerFlags{listen: tt.listen, allowPublic: tt.allowPublic}
		host, port, err := f.address(t.Context())
		switch {
		case tt.complaint == "" && (err != nil || host != tt.host || port != tt.port):
			t.Errorf("%q: %s:%d, %v", tt.listen, host, port, err)
		case tt.complaint != "" && (err == nil || !strings.Contains(err.Error(), tt.complaint)):
			t.Errorf("%q: error %v", tt.listen, err)
		}
	}
}

func TestRPCWorker_ShowsWhatMatters(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	l := workerLines{&out, &supervisor.RPCWorker{Host: "10.0.0.3", Port: 5, Unconfined: true}}
	for line := range strings.Lines(`ggml_backend_load_best: failed to enumerate /usr/lib: No such file or directory
!!!!!!!!!
WARNING: Host ('10.0.0.3') is != '127.0.0.1'
         Never expose the RPC server to an open network!
Starting RPC server v8.0.0
  endpoint       : 10.0.0.3:5
Devices:
  CPU: AMD EPYC (24105 MiB, 24105 MiB free)
Accepted client connection
recv returned 0 (peer closed?)
Client connection closed
Failed to allocate 3 bytes
`) {
		l.line(strings.TrimSuffix(line, "\n"))
	}
	const want = `The worker (protocol v8.0.0) listens on 10.0.0.3:5. Sandbox: off.
It knows no passwords and encrypts nothing: keep its address in a private network.
Devices:
  CPU: AMD EPYC (24105 MiB, 24105 MiB free)
Failed to allocate 3 bytes
`
	if out.String() != want {
		t.Errorf("output:\n%s", out.String())
	}
}
