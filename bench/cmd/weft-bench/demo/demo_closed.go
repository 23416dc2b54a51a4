package demo

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-sdn/weft/cmd/weft/run"
	"github.com/weft-sdn/weft/internal/companion"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/layout"

	"github.com/weft-sdn/weft/lab/topology"
)

// demoClosedLab is the lab of the controller that is closed to strangers.
const demoClosedLab = "demo-closed"

// closedDemo is a second controller, with a lab of its own, that lets in
// switches and clients by TLS only, wants tokens, and exports traces.
type closedDemo struct {
	*Demo
	pki, admin string // directory of certificates; file of the administrator's token
	spans      *spanCollector
}

// closed returns the second controller, which it starts when it is first asked
// for.
func (d features) closed(ctx context.Context) (*closedDemo, error) {
	if d.second != nil {
		return d.second, nil
	}
	c := &closedDemo{Demo: &Demo{out: d.out, began: d.began, plan: d.plan, dir: filepath.Join(d.dir, "closed")}}
	c.pki, c.admin = filepath.Join(c.dir, "certs"), filepath.Join(c.dir, "admin.token")
	d.second = c
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, err
	}
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	if err := os.WriteFile(c.admin, []byte(hex.EncodeToString(secret)+"\n"), 0o600); err != nil {
		return nil, err
	}
	for _, address := range []*string{&c.listen, &c.HTTP} {
		var err error
		if *address, err = freeport.Loopback(); err != nil {
			return nil, err
		}
	}
	if _, err := d.weft(ctx, "certs", "controller", "--dir", c.pki); err != nil {
		return nil, err
	}
	if _, err := d.weft(ctx, "certs", "switch", "1", "2", "3", "--together", "ring", "--dir", c.pki); err != nil {
		return nil, err
	}
	var err error
	if c.spans, err = collectSpans(); err != nil {
		return nil, err
	}
	certificate, key, authority := filepath.Join(c.pki, "controller.crt"), filepath.Join(c.pki, "controller.key"), filepath.Join(c.pki, "ca.crt")
	c.secure, c.ca, c.tokenFile = true, authority, c.admin
	c.further = []string{"--trace", c.spans.url, "--trace-one-in", "1",
		"--set", "southbound.certificate=" + certificate, "--set", "southbound.key=" + key, "--set", "southbound.authority=" + authority,
		"--set", "gateway.certificate=" + certificate, "--set", "gateway.key=" + key, "--set", "gateway.token_file=" + c.admin}
	if err := c.lend(c.pki, certificate, key, authority, c.admin); err != nil {
		return nil, err
	}
	if _, err := c.startController(ctx); err != nil {
		return nil, err
	}
	topo, err := topology.Ring(3, 1)
	if err != nil {
		return nil, err
	}
	exe, err := companion.Find("weft")
	if err != nil {
		return nil, err
	}
	c.Lab, err = lab.Up(ctx, topo, lab.Options{
		Temporary: true,
		Name:      demoClosedLab, Controllers: []string{"ssl:" + c.listen}, KeeperCommand: []string{exe, "lab", "keeper"},
		TLS: &layout.TLS{Certificate: filepath.Join(c.pki, "ring.crt"), Key: filepath.Join(c.pki, "ring.key"), Authority: authority},
	})
	if err != nil {
		return nil, err
	}
	_, err = c.AwaitDiscovery(ctx)
	return c, err
}

// lend has the user whom the controller becomes read files of root's.
func (c *closedDemo) lend(dir string, files ...string) error {
	to, err := run.ChooseAccount("", filepath.Join(c.dir, "data"))
	if err != nil {
		return err
	}
	errs := []error{os.Chmod(dir, 0o711)}
	for _, file := range files {
		errs = append(errs, os.Chown(file, to.UID, to.GID))
	}
	return errors.Join(errs...)
}

// stopClosed takes down the second controller and its lab, of this or of an
// earlier demo.
func (d features) stopClosed(ctx context.Context) error {
	err := lab.Down(ctx, demoClosedLab)
	if d.second != nil && d.second.spans != nil {
		defer d.second.spans.close()
	}
	c := &Demo{dir: filepath.Join(d.dir, "closed")}
	d.second = nil
	return errors.Join(err, c.endController())
}

// showTLS has switches that prove who they are forward, and strangers refused.
func (d features) showTLS(ctx context.Context) (string, error) {
	c, err := d.closed(ctx)
	if err != nil {
		return "", err
	}
	pinged, err := c.pingAll(ctx, false)
	if err != nil {
		return pinged, err
	}
	conn, err := tls.Dial("tcp", c.listen, &tls.Config{InsecureSkipVerify: true}) // a switch that shows no certificate
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		_, err = conn.Read(make([]byte, 1)) // by TLS 1.3 the refusal comes after the handshake
		_ = conn.Close()
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return "", fmt.Errorf("a connection without a certificate was not refused: %v", err)
	}
	refused := err
	if err := c.plainRefused(ctx); err != nil {
		return "", err
	}
	text, err := os.ReadFile(c.ca)
	if err != nil {
		return "", err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	north, err := tls.Dial("tcp", c.HTTP, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})
	if err != nil {
		return "", fmt.Errorf("northbound: %w", err)
	}
	version := tls.VersionName(north.ConnectionState().Version)
	_ = north.Close()
	return fmt.Sprintf("%d switches by certificate, %s; one without: %v; northbound by %s, not without", len(c.Lab.Topology().Switches), pinged, refused, version), nil
}

// plainRefused sees to it that the northbound does not answer without TLS.
func (c *closedDemo) plainRefused(ctx context.Context) error {
	if _, err := c.command(ctx, []string{"WEFT_SERVER=http://" + c.HTTP, "WEFT_CA="}, "get", "switches", "--timeout", "5s"); err == nil {
		return errors.New("the northbound answers without TLS")
	}
	return nil
}

// showTokens asks without a token, with one that may read, and with one that
// may change.
func (d features) showTokens(ctx context.Context) (string, error) {
	c, err := d.closed(ctx)
	if err != nil {
		return "", err
	}
	refused := func(want string, env []string, args ...string) error {
		fmt.Fprintf(c.out, "         $ weft %s\n", strings.Join(args, " "))
		_, err := c.command(ctx, env, args...)
		if err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("weft %s was not refused as wanted (%s): %v", strings.Join(args, " "), want, err)
		}
		fmt.Fprintln(c.out, inset(firstLines(err.Error(), 1)))
		return nil
	}
	if err := refused("token", []string{"WEFT_TOKEN_FILE="}, "get", "switches"); err != nil {
		return "", err
	}
	for _, role := range []string{"read", "operate"} {
		out, err := c.weft(ctx, "token", "create", "--name", "demo-"+role, "--role", role, "--expires", "1h", "-o", "json")
		if err != nil {
			return "", err
		}
		var made struct{ Token string }
		if err := json.Unmarshal([]byte(out), &made); err != nil {
			return "", err
		}
		with := []string{"WEFT_TOKEN_FILE=", "WEFT_TOKEN=" + made.Token}
		if _, err := c.command(ctx, with, "get", "switches"); err != nil {
			return "", err
		}
		add := []string{"firewall", "add", "--id", "demo", "--deny", "--match", "tcp_dst=23"}
		if role == "read" {
			err = refused("read", with, add...)
		} else {
			_, err = c.command(ctx, with, add...)
		}
		if err != nil {
			return "", err
		}
		if err := refused("admin", with, "token", "list"); err != nil {
			return "", err
		}
	}
	out, err := c.weft(ctx, "get", "audit", "-o", "json")
	if err != nil {
		return "", err
	}
	for _, want := range []string{"demo-read", "demo-operate"} {
		if !strings.Contains(out, want) {
			return "", fmt.Errorf("the audit log knows nothing of %s", want)
		}
	}
	table, err := c.weft(ctx, "get", "audit")
	fmt.Fprintln(c.out, inset(firstLines(table, 6)))
	return "without a token refused; read may look and not change; operate may change and not administer; the audit log has it all", err
}

// showTraces has a packet come to the controller and prints what it met.
func (d features) showTraces(ctx context.Context) (string, error) {
	c, err := d.closed(ctx)
	if err != nil {
		return "", err
	}
	h, err := c.hosts(2)
	if err != nil {
		return "", err
	}
	var figure string
	err = until(ctx, 20*time.Second, "a trace with the stages in it", func() (bool, error) {
		if _, err := c.Lab.Exec(ctx, h[0].Name, "ip", "neigh", "flush", "dev", "eth0"); err != nil {
			return false, err
		}
		if _, err := c.answered(ctx, h[0].Name, h[1].Name, 1); err != nil {
			return false, err
		}
		figure = c.spans.longest()
		return strings.Contains(figure, "forwarding"), nil
	})
	return figure, err
}

// traced is what the collector knows of a packet-in.
type traced struct {
	root  string
	names []string
}

// spanCollector is a collector of OpenTelemetry traces.
type spanCollector struct {
	url    string
	server *http.Server

	mu     sync.Mutex
	spans  int
	traces map[string]*traced
}

// maxTraces bounds what a spanCollector keeps.
const maxTraces = 10_000

// collectSpans starts a collector on loopback.
func collectSpans() (*spanCollector, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &spanCollector{url: "http://" + l.Addr().String(), traces: map[string]*traced{}}
	c.server = &http.Server{Handler: c, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = c.server.Serve(l) }() // until close
	return c, nil
}

func (c *spanCollector) close() { c.server.Close() }

// ServeHTTP takes spans over OTLP/HTTP.
func (c *spanCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(in)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		in = z
	}
	body, err := io.ReadAll(io.LimitReader(in, 16<<20))
	var m collector.ExportTraceServiceRequest
	if err = cmp.Or(err, proto.Unmarshal(body, &m)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range m.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				c.spans++
				t := c.traces[string(s.TraceId)]
				if t == nil {
					if len(c.traces) >= maxTraces {
						continue
					}
					t = &traced{}
					c.traces[string(s.TraceId)] = t
				}
				text := fmt.Sprintf("%s %d µs", s.Name, (s.EndTimeUnixNano-s.StartTimeUnixNano)/1000)
				if len(s.ParentSpanId) == 0 {
					t.root = text
				} else {
					t.names = append(t.names, text)
				}
			}
		}
	}
}

// longest tells of the packet-in that most is known of.
func (c *spanCollector) longest() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	best := &traced{}
	for _, t := range c.traces {
		if t.root != "" && (len(t.names) > len(best.names) || len(t.names) == len(best.names) && t.root < best.root) {
			best = t
		}
	}
	stages := slices.Clone(best.names)
	return fmt.Sprintf("%d spans of %d packet-ins; one: %s: %s", c.spans, len(c.traces), best.root, strings.Join(stages, ", "))
}
