package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/home"
)

// psTimeout bounds the time that a server may take to report what is loaded. It takes a millisecond.
const psTimeout = 10 * time.Second

// definePS defines `lmcaddy ps`, which asks the running server.
func definePS(cmd *cobra.Command) {
	cmd.Long = `Shows the models that are loaded, loading or to be restarted, the waiting requests, and the memory in use.

It asks the server that runs on $LMCADDY_HOME, over its admin endpoint. EXPIRES counts from the end of
an instance's last request; an instance in use has none.`
	cmd.Args = cobra.NoArgs
	cmd.SilenceUsage = true
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	address := cmd.Flags().String("address", "", "the admin endpoint, if the Caddyfile moves it out of the home folder")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		body, err := askLoaded(cmd.Context(), *address)
		if err != nil {
			return err
		}
		if *asJSON {
			if !json.Valid(body) {
				return errors.New("the server's answer is not JSON")
			}
			return writeJSON(cmd.OutOrStdout(), json.RawMessage(body))
		}
		var r caddymodule.Report
		if err := json.Unmarshal(body, &r); err != nil {
			return fmt.Errorf("the server's answer can't be read: %w", err)
		}
		return writeReport(cmd.OutOrStdout(), &r)
	}
}

// askLoaded asks a running server what is loaded, at its admin endpoint. If that isn't in the home by default, as in another
// Caddy build, the home's socket, which every server has, is asked first; but not if the user's environment names an endpoint.
func askLoaded(ctx context.Context, address string) ([]byte, error) {
	dir, err := home.FromEnvironment()
	if address == "" && os.Getenv("CADDY_ADMIN") == "" && err == nil && caddy.DefaultAdminListen != adminListen(dir) {
		ctx, cancel := context.WithTimeout(ctx, psTimeout)
		defer cancel()
		server := client.OnSocket(dir.Socket())
		defer server.Close()
		var body json.RawMessage
		if server.Get(ctx, caddymodule.PSPath, &body) == nil {
			return body, nil
		}
	}
	return askAdmin(ctx, address, caddymodule.PSPath)
}

// askAdmin asks a running server's admin endpoint for a path. The address is Caddy's notation; empty: the default.
func askAdmin(ctx context.Context, address, path string) ([]byte, error) {
	if address == "" {
		address = caddy.DefaultAdminListen
	}
	to, err := caddy.ParseNetworkAddress(address)
	if err != nil || to.PortRangeSize() > 1 {
		return nil, fmt.Errorf("%s is not the address of an admin endpoint: give one such as localhost:2019 or unix//run/admin.sock", address)
	}
	host := to.JoinHostPort(0)
	if to.IsUnixNetwork() {
		to.Host, _, _ = strings.Cut(to.Host, "|") // the socket's mode
		host = "127.0.0.1"                        // any will do
	}
	ctx, cancel := context.WithTimeout(ctx, psTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+path, nil)
	if err != nil {
		return nil, err
	}
	asking := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, to.Network, to.JoinHostPort(0))
		},
	}}
	resp, err := asking.Do(req)
	if err != nil {
		return nil, notRunning(to, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the server's answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers with status %d: %s", resp.StatusCode, adminMessage(body))
	}
	return body, nil
}

// notRunning says what to do if no server answers.
func notRunning(to caddy.NetworkAddress, err error) error {
	var failed *net.OpError
	if !errors.As(err, &failed) || failed.Op != "dial" {
		return fmt.Errorf("asking the server at %s: %w", to.JoinHostPort(0), err)
	}
	return fmt.Errorf("%s (%w): start one with \"lmcaddy serve\" or \"lmcaddy run\", choose another home with LMCADDY_HOME, or name the admin endpoint with --address", nothingRuns(), failed)
}

// adminMessage is what an error of the admin endpoint says.
func adminMessage(body []byte) string {
	var e struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &e) == nil && e.Error != "" {
		return e.Error
	}
	return strings.TrimSpace(string(body))
}
