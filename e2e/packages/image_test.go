//go:build release

package packages

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// builder runs buildah, which builds images without a Docker engine, in a store of the test's own.
type builder struct {
	t   *testing.T
	dir string
}

func newBuilder(t *testing.T) builder {
	t.Helper()
	aptInstall(t, "buildah", "buildah", "crun")
	b := builder{t, t.TempDir()}
	t.Cleanup(func() { // what it mounts goes first
		out, err := exec.Command("buildah", append(b.store(), "rm", "--all")...).CombinedOutput() //nolint:usetesting // the test's context has ended
		if err != nil {
			t.Errorf("buildah rm: %v\n%s", err, out)
		}
	})
	b.write("policy.json", `{"default": [{"type": "insecureAcceptAnything"}]}`)
	b.write("registries.conf", "unqualified-search-registries = [\"docker.io\"]\n")
	return b
}

func (b builder) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b builder) store() []string {
	return []string{"--root", filepath.Join(b.dir, "root"), "--runroot", filepath.Join(b.dir, "run"), "--storage-driver", "overlay"}
}

func (b builder) run(args ...string) string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "buildah", append(b.store(), args...)...)
	cmd.Env = append(os.Environ(), "CONTAINERS_REGISTRIES_CONF="+filepath.Join(b.dir, "registries.conf"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("buildah %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// base makes an image with the name of one that the Dockerfile begins with.
func (b builder) base(name, root string, config []string, added ...string) {
	b.t.Helper()
	c := b.run("from", "scratch")
	b.run("add", "--quiet", c, root, "/")
	for _, dir := range added {
		b.run("add", "--quiet", c, dir, dir)
	}
	b.run(append(append([]string{"config"}, config...), c)...)
	b.run("commit", "--quiet", "--rm", "--signature-policy", filepath.Join(b.dir, "policy.json"), c, name)
}

// copyAptSettings makes apt in a system accept the old lists of a mirror, if this machine's apt does.
func copyAptSettings(t *testing.T, root string) {
	t.Helper()
	settings := must(t, "apt-config", "dump", "--format", "%f \"%v\";%n", "Acquire::Check-Valid-Until")
	file := filepath.Join(root, "etc", "apt", "apt.conf.d", "machine")
	if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
}

// goFolder is where a variable of Go's says.
func goFolder(t *testing.T, variable string) string {
	return strings.TrimSpace(must(t, "go", "env", variable))
}

// engines has the values of the Dockerfile's argument ENGINE. Each engine runs models without a GPU, too.
var engines = []string{"cpu", "vulkan", "cuda"}

// The Dockerfile's steps are carried out for each engine, and the images serve.
func TestImage(t *testing.T) {
	b := newBuilder(t)
	debian := newSystem(t, "trixie", "ca-certificates").root
	copyAptSettings(t, debian)
	goroot := goFolder(t, "GOROOT")
	path := "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	b.base("docker.io/library/debian:trixie-slim", debian, []string{"--env", path})
	b.base("docker.io/library/golang:1.26.8-trixie", debian, []string{
		"--env", path + ":" + goroot + "/bin", "--env", "GOMODCACHE=/modules", "--env", "GOCACHE=/built", "--env", "GOROOT=" + goroot,
		"--env", "GOFLAGS=-mod=mod",
	}, goroot)
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) { checkImage(t, builder{t, b.dir}, engine) })
	}
}

// checkImage builds the image with one engine, and uses it.
func checkImage(t *testing.T, b builder, engine string) {
	image := "lmcaddy:" + engine
	b.run("bud", "--quiet", "--isolation", "chroot", "--pull-never", "--format", "docker", "--layers=false",
		"--build-arg", "VERSION=v1.2.3", "--build-arg", "ENGINE="+engine,
		"--volume", goFolder(t, "GOMODCACHE")+":/modules", "--volume", goFolder(t, "GOCACHE")+":/built",
		"--signature-policy", filepath.Join(b.dir, "policy.json"), "--tag", image, "..")
	t.Run("its configuration", func(t *testing.T) { checkConfig(t, b, image) })
	c := b.run("from", "--pull-never", "--signature-policy", filepath.Join(b.dir, "policy.json"), "localhost/"+image)
	s := &system{t, b.run("mount", c)}
	t.Run("its files", func(t *testing.T) {
		s := &system{t, s.root}
		want := `-rwxr-xr-x root:root /usr/bin/lmcaddy
-rw-r--r-- root:root /etc/lmcaddy/Caddyfile
drwx------ lmcaddy:lmcaddy /var/lib/lmcaddy
`
		if got := s.modes("/usr/bin/lmcaddy", "/etc/lmcaddy/Caddyfile", "/var/lib/lmcaddy"); got != want {
			t.Errorf("the files are\n%snot\n%s", got, want)
		}
		if out := s.run("lmcaddy", "version"); !strings.HasPrefix(out, "lmcaddy v1.2.3 ") {
			t.Errorf("it is %s", out)
		}
		if s.has("/src") || s.has("/usr/local/go") {
			t.Error("the image has what it was built from")
		}
	})
	t.Run("it answers, is healthy, and leaves no processes behind", func(t *testing.T) { imageServes(t, &system{t, s.root}) })
}

func checkConfig(t *testing.T, b builder, name string) {
	var image struct {
		Docker struct {
			Config struct {
				User, StopSignal string
				Entrypoint, Cmd  []string
				Volumes          map[string]any
				ExposedPorts     map[string]any
				Healthcheck      struct{ Test []string }
				Labels           map[string]string
			} `json:"config"`
		}
	}
	if err := json.Unmarshal([]byte(b.run("inspect", "--type", "image", "localhost/"+name)), &image); err != nil {
		t.Fatal(err)
	}
	c := image.Docker.Config
	if c.User != "10001:10001" || c.StopSignal != "SIGTERM" || c.Volumes["/var/lib/lmcaddy"] == nil || c.ExposedPorts["1234/tcp"] == nil {
		t.Errorf("%+v", c)
	}
	if got := strings.Join(append(c.Entrypoint, c.Cmd...), " "); got != "tini -- lmcaddy run --config /etc/lmcaddy/Caddyfile" {
		t.Errorf("it starts %s", got)
	}
	if got := c.Labels["org.opencontainers.image.version"]; got != "v1.2.3" {
		t.Errorf("its label says that it is %q", got)
	}
	if got := strings.Join(c.Healthcheck.Test, " "); got != "CMD lmcaddy status" {
		t.Errorf("its health is checked by %s", got)
	}
}

// container is the image's command, started as process 1 of namespaces of its own, as its user.
type container struct {
	*system
	unshare *exec.Cmd
	pid     string // of process 1, outside
}

const asUser = "setpriv --reuid=10001 --regid=10001 --clear-groups --no-new-privs env -i PATH=/usr/local/bin:/usr/bin:/bin LMCADDY_HOME=/var/lib/lmcaddy "

func (s *system) start(command string) *container {
	s.t.Helper()
	c := &container{system: s}
	c.unshare = exec.CommandContext(s.t.Context(), "unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "sh", "-euc",
		`mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"; ip link set lo up; exec chroot "$1" `+asUser+command, "sh", s.root)
	log, err := os.Create(filepath.Join(s.t.TempDir(), "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	c.unshare.Stdout, c.unshare.Stderr = log, log
	if err := c.unshare.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = c.unshare.Process.Kill()
		_ = c.unshare.Wait()
		if s.t.Failed() {
			s.t.Log(contentOf(s.t, log.Name()))
		}
	})
	harness.Eventually(s.t, harness.Patience, "process 1 is there", func() bool {
		c.pid = strings.TrimSpace(c.children(strconv.Itoa(c.unshare.Process.Pid)))
		return c.pid != ""
	})
	return c
}

// children returns the processes whose parent is pid, separated by spaces.
func (c *container) children(pid string) string {
	text, _ := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children")) // none when the process has ended
	return string(text)
}

// exec runs a command inside, as docker exec does.
func (c *container) exec(command string) (string, error) {
	cmd := exec.CommandContext(c.t.Context(), "nsenter", "--target", c.pid, "--mount", "--pid", "--net", "--root", "--wd", "sh", "-c", asUser+command)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func imageServes(t *testing.T, s *system) {
	model := filepath.Join("models", "lmcaddy", "tinychat", "tinychat-f16.gguf")
	s.put(filepath.Join("..", "testdata", model), filepath.Join("/var/lib/lmcaddy", model))
	s.run("chown", "-R", "lmcaddy:lmcaddy", "/var/lib/lmcaddy")
	c := s.start("tini -- lmcaddy run --config /etc/lmcaddy/Caddyfile")
	var said string
	harness.Eventually(t, harness.Patience, "it is healthy", func() bool {
		out, err := c.exec("lmcaddy status")
		said = out
		return err == nil
	})
	if !strings.Contains(said, "/usr/local/bin/llama-server") {
		t.Errorf("it has another engine:\n%s", said)
	}
	if out, err := c.exec(`lmcaddy chat tinychat --temperature 0 --prompt "What is the capital of France?"`); err != nil || !strings.Contains(out, "Paris") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := c.exec(`sh -c "sleep 0 & exit"`); err != nil { // nobody waits for the child but process 1
		t.Errorf("%v: %s", err, out)
	}
	harness.Eventually(t, harness.Patience, "process 1 has ended the child that was left to it", func() bool {
		return len(strings.Fields(c.children(c.pid))) == 1
	})
	pid, err := strconv.Atoi(c.pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.unshare.Wait(); err != nil {
		t.Errorf("it stops with %v", err)
	}
}
