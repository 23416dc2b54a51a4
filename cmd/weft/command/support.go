package command

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
	"github.com/weft-sdn/weft/cmd/weft/run"
	"github.com/weft-sdn/weft/internal/asowner"
)

// supportMost bounds one document of a bundle, in octets.
const supportMost = 64 << 20

// How many documents of a bundle are waited for at a time, and for how long
// each.
const (
	supportAtOnce   = 8
	supportPatience = 10 * time.Second
)

func supportCommand() *cobra.Command {
	var r cli.Remote
	var out string
	var switches int
	cmd := &cobra.Command{
		Use:   "support",
		Short: "Gather what a bug report needs into one file, without secrets",
		Long: `Gather what the controller tells of itself and of the network into one file:
every list that its northbound has, the tables of switches, figures, health and
versions. Values of keys that are secrets by their names, such as token, key or
password, are taken out, also where they stand in texts. What could not be had
is listed in errors.txt; the bundle is written all the same. Hosts' addresses
are in it: look at it before you hand it on.`,
		Example: `  weft support
  weft support --out report.tar.gz --switches 8`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				out = "weft-support-" + time.Now().UTC().Format("20060102-150405") + ".tar.gz"
			}
			_, absent := os.Stat(out)
			f, err := asowner.OpenFile(out, os.O_WRONLY|os.O_CREATE, 0o600) // what cannot be written is said now
			if err != nil {
				return err
			}
			f.Close()
			b, err := collectSupport(&r, cmd, switches)
			if err != nil {
				if absent != nil {
					asowner.Remove(out)
				}
				return err
			}
			if err := asowner.WriteFile(out, b.Bytes(), 0o600); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d KiB\n", out, (b.Len()+1023)/1024)
			return nil
		},
	}
	r.Flags(cmd)
	cmd.Flags().StringVar(&out, "out", "", "file to write (default weft-support-TIME.tar.gz)")
	cmd.Flags().IntVar(&switches, "switches", 32, "of how many switches to read the tables")
	return cmd
}

// bundle is a compressed archive under construction.
type bundle struct {
	bytes.Buffer
	gz     *gzip.Writer
	tar    *tar.Writer
	began  time.Time
	errors strings.Builder
}

func newBundle() *bundle {
	b := &bundle{began: time.Now()}
	b.gz = gzip.NewWriter(&b.Buffer)
	b.tar = tar.NewWriter(b.gz)
	return b
}

// add writes a document, or notes why there is none.
func (b *bundle) add(name string, text []byte, err error) error {
	if err != nil {
		fmt.Fprintf(&b.errors, "%s: %v\n", name, err)
		return nil
	}
	h := &tar.Header{Name: "weft-support/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: b.began}
	if err := b.tar.WriteHeader(h); err != nil {
		return err
	}
	_, err = b.tar.Write(text)
	return err
}

func (b *bundle) close() error {
	err := b.add("errors.txt", []byte(b.errors.String()), nil)
	return errors.Join(err, b.tar.Close(), b.gz.Close())
}

// collectSupport returns the bundle of a controller.
func collectSupport(r *cli.Remote, cmd *cobra.Command, switches int) (*bundle, error) {
	c, done, err := r.Dial(cmd)
	if err != nil {
		return nil, err
	}
	defer done()
	health, err := get.CheckHealth(c)
	if err != nil {
		return nil, err
	}
	b := newBundle()
	text, err := cli.ToJSON(map[string]any{"checks": health})
	if err := b.add("health.json", text, err); err != nil {
		return nil, err
	}
	about := fmt.Sprintf("weft %s\n%s %s/%s\ntaken %s\n", run.Build().Version, runtime.Version(), runtime.GOOS, runtime.GOARCH, b.began.UTC().Format(time.RFC3339))
	if err := b.add("client.txt", []byte(about), nil); err != nil {
		return nil, err
	}
	paths, err := listPaths()
	if err != nil {
		return nil, err
	}
	paths = append(paths, "/metrics")
	if m, err := c.ListSwitches(c.Ctx, &api.ListSwitchesRequest{}); err == nil {
		for i, s := range m.Switches {
			if i == switches {
				fmt.Fprintf(&b.errors, "tables of %d more switches: --switches is %d\n", len(m.Switches)-i, switches)
				break
			}
			for _, what := range []string{"flows", "groups", "meters", "port-stats", "table-stats"} {
				paths = append(paths, "/v1/switches/"+s.Dpid+"/"+what)
			}
		}
	}
	if err := fetchDocuments(r, cmd, b, paths); err != nil {
		return nil, err
	}
	return b, b.close()
}

// fetchDocuments adds what is at paths, several at a time: some may wait for what
// is not well, and the others are what tells why.
func fetchDocuments(r *cli.Remote, cmd *cobra.Command, b *bundle, paths []string) error {
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	var mu sync.Mutex // guards b and done
	done := 0
	var g errgroup.Group
	g.SetLimit(supportAtOnce)
	for _, p := range paths {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(parent, min(r.Timeout, supportPatience))
			defer cancel()
			name := strings.TrimPrefix(p, "/v1/") + ".json"
			if p == "/metrics" {
				name = "metrics.txt"
			}
			text, err := fetchDocument(ctx, r, p)
			if err == nil {
				text = redact(text)
			}
			mu.Lock()
			defer mu.Unlock()
			if done++; cli.Terminal(os.Stderr) {
				fmt.Fprintf(cmd.ErrOrStderr(), "\r%d of %d documents", done, len(paths))
			}
			return b.add(strings.TrimPrefix(path.Clean(name), "/"), text, err)
		})
	}
	err := g.Wait()
	if cli.Terminal(os.Stderr) {
		fmt.Fprintln(cmd.ErrOrStderr())
	}
	return err
}

// listPaths returns the paths of all lists of the northbound: what can be read
// without saying of what.
func listPaths() ([]string, error) {
	raw, err := api.OpenAPI()
	if err != nil {
		return nil, err
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("the northbound's description: %w", err)
	}
	var list []string
	for p, methods := range doc.Paths {
		if _, get := methods["get"]; get && !strings.Contains(p, "{") {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list, nil
}

// fetchDocument reads a document of the northbound.
func fetchDocument(ctx context.Context, r *cli.Remote, p string) ([]byte, error) {
	u, err := r.Address()
	if err != nil {
		return nil, err
	}
	tls, err := r.TLS(u)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath(p).String(), nil)
	if err != nil {
		return nil, err
	}
	if req.Header, err = r.Header(); err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: tls}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, supportMost+1))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(text[:min(len(text), 300)]))
	case len(text) > supportMost:
		return nil, fmt.Errorf("more than %d MiB: left out", supportMost>>20)
	}
	return text, nil
}

// Secrets, by the names of their keys, in JSON and, in texts, in YAML and as
// assignments; and the user's part of URLs.
var (
	secretName = `[A-Za-z0-9_.-]*(?:token|secret|passw(?:or)?d|credential|private|key)s?`
	secretJSON = regexp.MustCompile(`(?i)("` + secretName + `"\s*:\s*)(?:"(?:[^"\\]|\\.)*"|\[[^\[\]{}]*\])`)
	secretText = regexp.MustCompile(`(?i)(\b` + secretName + `(?:\\")?\s*[:=]\s*)(?:\\"(?:[^"\\]|\\[^"])*\\"|'[^'\n]*'|[^\s"'\\,}\[{]+)`)
	secretURL  = regexp.MustCompile(`([a-z]+://)[^/\s"@]+@`)
)

// redact takes secrets out of a document.
func redact(text []byte) []byte {
	text = secretJSON.ReplaceAll(text, []byte(`$1"(removed)"`))
	text = secretText.ReplaceAll(text, []byte(`$1(removed)`))
	return secretURL.ReplaceAll(text, []byte(`$1(removed)@`))
}
