package bench

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/bench/sim/httpload"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/asowner"
)

// benchHTTPConfig is the flags of weft bench http that are not a load's.
type benchHTTPConfig struct {
	httpload.Config
	rate                        float64
	arrivals                    string
	seed                        uint64
	data                        string
	headers                     []string
	certificate, key, authority string
}

// benchHTTPResult is what weft bench http prints.
type benchHTTPResult struct {
	benchTaken
	*httpload.Result
}

func benchHTTPCommand() *cobra.Command {
	var c benchHTTPConfig
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "http URL...",
		Short: "Load HTTP servers",
		Long: `Load HTTP servers, over HTTP/2 with prior knowledge, HTTP/1.1 or TLS, also in the
hosts of a lab. Without --rate it is a closed loop: each stream of each
connection asks again when it is answered, and requests_per_s says how fast the
servers are. With --rate it is an open loop: requests are due at that rate,
whether or not earlier ones are answered, and latency counts from when each was
due, so that it is corrected for coordinated omission; service is the time from
when it was sent.

Of several URLs, each connection goes to one. Answers are counted by the
instance that an answer's header names.`,
		Example: `  weft bench http http://127.0.0.1:7784/nudm-sdm/v2/imsi-1/am-data --connections 10
  weft bench http http://127.0.0.1:7784/nudm-sdm/v2/imsi-1/am-data --rate 500 --arrivals poisson -o json
  weft lab exec h1 -- weft bench http http://10.0.0.5:7777/nudm-sdm/v2/imsi-1/am-data --connections 4 --streams 10`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.complete(args); err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			var r benchHTTPResult
			var err error
			r.begin()
			if r.Result, err = httpload.Run(ctx, c.Config); err != nil {
				return err
			}
			r.end()
			if err := out.Print(cmd, r, r.table); err != nil {
				return err
			}
			if r.Done == 0 {
				return errors.New("no request was answered well")
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.Connections, "connections", 10, "connections")
	f.IntVar(&c.Streams, "streams", 1, "requests outstanding on a connection")
	f.BoolVar(&c.HTTP1, "http1", false, "HTTP/1.1 instead of HTTP/2")
	f.Float64Var(&c.rate, "rate", 0, "requests a second, over all connections (default: as fast as answers come)")
	f.StringVar(&c.arrivals, "arrivals", "constant", "of --rate: constant or poisson")
	f.Uint64Var(&c.seed, "seed", 1, "of poisson arrivals")
	f.DurationVar(&c.Duration, "duration", 10*time.Second, "measured time")
	f.DurationVar(&c.Warmup, "warmup", time.Second, "load before that, not measured")
	f.DurationVar(&c.Timeout, "timeout", 5*time.Second, "longest time to connect, and of a request")
	f.IntVar(&c.PerConnection, "requests-per-connection", 0, "replace a connection after so many requests; 0: never")
	f.StringVar(&c.Method, "method", "", "method (default: GET, or POST with --data)")
	f.StringVar(&c.data, "data", "", "body of the requests")
	f.StringArrayVar(&c.headers, "header", nil, "header of the requests, NAME: VALUE; may be repeated")
	f.StringVar(&c.InstanceHeader, "instance-header", "X-Weft-Instance", "header of answers that names the instance")
	f.StringVar(&c.certificate, "certificate", "", "the client's certificate, in FILE")
	f.StringVar(&c.key, "key", "", "its key, in FILE")
	f.StringVar(&c.authority, "authority", "", "certificates of authorities that servers' certificates must be of, in FILE (default: the system's)")
	out.Flag(cmd)
	return cmd
}

// complete puts into the load what flags and arguments say in words.
func (c *benchHTTPConfig) complete(args []string) error {
	for _, text := range args {
		u, err := url.Parse(text)
		if err != nil {
			return err
		}
		c.Targets = append(c.Targets, u)
	}
	c.Body = []byte(c.data)
	if c.Method = cmp.Or(strings.ToUpper(c.Method), map[bool]string{true: http.MethodPost, false: http.MethodGet}[c.data != ""]); strings.ContainsAny(c.Method, " \r\n") {
		return fmt.Errorf("method %q: want one such as GET", c.Method)
	}
	c.Header = http.Header{"User-Agent": {"weft-bench"}}
	for _, text := range c.headers {
		name, value, ok := strings.Cut(text, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return fmt.Errorf("header %q: want NAME: VALUE", text)
		}
		c.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if c.rate != 0 {
		a, err := httpload.ParseArrivals(c.arrivals, c.rate, c.seed)
		if err != nil {
			return err
		}
		c.Arrivals = &a
	}
	c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if c.authority != "" {
		text, err := asowner.ReadFile(c.authority)
		if err != nil {
			return err
		}
		if c.TLS.RootCAs = x509.NewCertPool(); !c.TLS.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s has no certificate in PEM form", c.authority)
		}
	}
	if c.certificate != "" || c.key != "" {
		pair, err := asowner.LoadKeyPair(c.certificate, c.key)
		if err != nil {
			return fmt.Errorf("certificate %s with key %s: %w", c.certificate, c.key, err)
		}
		c.TLS.Certificates = []tls.Certificate{pair}
	}
	return c.Validate()
}

// table prints a result for people.
func (r benchHTTPResult) table(t *cli.Table) {
	l := r.Result.Conditions
	load := fmt.Sprintf("%s loop", l.Loop)
	if l.Rate > 0 {
		load += fmt.Sprintf(", %v a second, %s", l.Rate, l.Arrivals)
	}
	fmt.Fprintf(t, "%s, %s, %s × %s, %v s\n\n", l.Protocol, load, cli.Several(uint32(l.Connections), "connection", "connections"),
		cli.Several(uint32(l.Streams), "stream", "streams"), l.DurationS)
	t.Row("REQUESTS", "DONE", "PER SECOND", "FAILED", "CONNECTIONS OPENED", "GENERATOR CPU %")
	failed := 0
	for _, n := range r.Failures {
		failed += n
	}
	t.Row(r.Due, r.Done, fmt.Sprintf("%.0f", r.RequestsPS), failed, r.Connections.Opened, fmt.Sprintf("%.0f", r.CPU))
	fmt.Fprintln(t)
	t.Row("MICROSECONDS", "MEAN", "P50", "P90", "P95", "P99", "P99.9", "MAX")
	for _, line := range []struct {
		name string
		httpload.Latency
	}{{"latency", r.Latency}, {"service", r.Service}} {
		cells := []any{line.name}
		for _, v := range []float64{line.Mean, line.P50, line.P90, line.P95, line.P99, line.P999, line.Max} {
			cells = append(cells, fmt.Sprintf("%.0f", v))
		}
		t.Row(cells...)
	}
	benchCounted(t, "FAILURE", r.Failures)
	benchCounted(t, "INSTANCE", r.Instances)
	fmt.Fprintln(t)
	_ = r.writeTaken(t) // to memory
}

// benchCounted prints counts by name, if there are any.
func benchCounted(t *cli.Table, what string, counts map[string]int) {
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	if slices.Sort(names); len(names) == 0 {
		return
	}
	fmt.Fprintln(t)
	t.Row(what, "COUNT")
	for _, name := range names {
		t.Row(name, counts[name])
	}
}
