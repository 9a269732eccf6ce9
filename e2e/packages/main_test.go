// Package packages tests what users install: the release's archives and packages, and the image.
//
// With the build tag release, as `make release-test` runs them, the tests install the packages into new systems and build the
// image. That takes minutes, root's rights and Debian's packages.
package packages

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m)
}
