package caddymodule

import (
	"slices"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

func TestSites_Pages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		site resource.Site
		want []string
	}{
		{resource.Site{Page: true, Addresses: []string{"http://127.0.0.1:1234"}}, []string{"http://127.0.0.1:1234"}},
		{resource.Site{Page: true, Addresses: []string{"http://:1234", "http://0.0.0.0:80", "http://[::]:81"}}, []string{"http://localhost:1234", "http://localhost", "http://localhost:81"}},
		{resource.Site{Page: true, Addresses: []string{"https://:443"}, Hosts: []string{"lm.lan", "lm.example"}}, []string{"https://lm.lan"}},
		{resource.Site{Page: true, Addresses: []string{"https://:8443"}, Hosts: []string{"*.lan"}}, []string{"https://localhost:8443"}},
		{resource.Site{Page: true, Addresses: []string{"unix//run/lm.sock", "http://[::1]:80"}}, []string{"http://[::1]:80"}},
		{resource.Site{Addresses: []string{"http://:1234"}}, []string{}},
	} {
		if got := pagesOf([]resource.Site{c.site}); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, not %v", c.site, got, c.want)
		}
	}
}
