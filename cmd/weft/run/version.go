package run

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/loom"
)

// release is the version that this source is becoming, or is.
const release = "0.1.0"

// version is set by the linker for a release, and for what stands between two:
// -ldflags "-X github.com/weft-sdn/weft/cmd/weft/run.version=0.1.0".
var version string

// BuildInfo is what this binary was made of.
type BuildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the revision had changes that were not committed
	Time     string `json:"time,omitempty"`     // of the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Loom     bool   `json:"loom"` // the page in the browser is built in
}

// Build returns what this binary was made of.
func Build() BuildInfo {
	b := BuildInfo{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			case "vcs.time":
				b.Time = s.Value
			}
		}
	}
	_, b.Loom = loom.Files()
	b.Version = strings.TrimPrefix(b.Version, "v")
	if b.Version == "" {
		b.Version = release + "-dev"
		if len(b.Revision) >= 12 {
			b.Version += "." + b.Revision[:12]
		}
	}
	return b
}

func VersionCommand() *cobra.Command {
	var out cli.Output
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print what this binary is",
		Example: "  weft version -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := Build()
			return out.Print(cmd, b, func(t *cli.Table) {
				fmt.Fprintf(t, "weft %s %s %s\n", b.Version, b.Go, b.Platform)
				if b.Loom {
					fmt.Fprintln(t, "with Loom, the page in the browser")
				} else {
					fmt.Fprintln(t, "without Loom, the page in the browser: make build builds it where npm is installed")
				}
				if b.Revision != "" {
					fmt.Fprintf(t, "revision %s of %s\n", b.Revision, b.Time)
				}
			})
		},
	}
	out.Flag(cmd)
	return cmd
}
