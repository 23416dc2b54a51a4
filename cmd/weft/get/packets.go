package get

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
)

// maxPacket is the longest line that is read, in octets.
const maxPacket = 4 << 20

func getPackets(r *cli.Remote) *cobra.Command {
	var out cli.Output
	var match []string
	var oneIn, rate uint32
	var dpid cli.DPIDFlag
	var seconds float64
	var count int
	cmd := &cobra.Command{
		Use:   "packets",
		Short: "Watch packets on their way through the pipeline",
		Long: `Watch packet-ins on their way through the pipeline, in all processes of the
controller; until interrupted. Of each sampled packet: where it came in and what it
is, and a line for each stage that saw it, with the process that the stage runs in,
the transport by which the packet came there (inproc: none), when the stage began
after the packet was read and how long it took, its verdict, and the operations
that it added to the decision; verdict later: what a stage did about a packet that
it had kept, such as until a path was known. Then, of each entry that the packet
changes, what its switch has said to it and when: confirmed (by barrier), refused,
late or lost. A packet is shown when that is known, after 12 s at most. Times of processes on other machines are by those
machines' clocks. With -o json, one object per line. Watching every packet slows
the controller down; it costs nothing when nobody watches.`,
		Example: `  weft get packets --one-in 1000
  weft get packets --match ip,ipv4_dst=10.0.0.2 --switch 1 --count 3
  weft get packets --seconds 10 -o json | jq .packet.duration_us`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := flow.ParseMatchString(cli.WithProtocols(strings.Join(match, ",")))
			if err != nil {
				return cli.Usagef(cmd, "--match: %v", err)
			}
			if seconds < 0 || count < 0 {
				return cli.Usagef(cmd, "--seconds %g, --count %d: want 0 or more", seconds, count)
			}
			ctx := cmd.Context()
			if ctx == nil {
				ctx = context.Background()
			}
			ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if seconds > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
				defer cancel()
			}
			lines, err := watchPackets(ctx, r, cmd, &api.WatchPacketsRequest{Match: m.Text(), OneIn: oneIn, MaxPerS: rate, Dpid: dpid.Text})
			if err != nil {
				return err
			}
			defer lines.Close()
			return printPackets(ctx, cmd, lines, out.Format, count)
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&match, "match", "m", nil, "only packets with these header fields, as ovs-ofctl has them, such as tcp,tcp_dst=80; may be repeated")
	f.Uint32Var(&oneIn, "one-in", 1, "one in so many of these, by chance")
	f.Uint32Var(&rate, "rate", 0, "at most so many per second, up to 100; 0 is 100")
	f.Var(&dpid, "switch", "only those of this switch")
	f.Float64Var(&seconds, "seconds", 0, "stop after so long; 0 is never")
	f.IntVarP(&count, "count", "n", 0, "stop after this many packets; 0 is never")
	out.Flag(cmd)
	return cmd
}

// watchPackets opens the stream of packets.
func watchPackets(ctx context.Context, r *cli.Remote, cmd *cobra.Command, req *api.WatchPacketsRequest) (io.ReadCloser, error) {
	u, err := r.Address()
	if err != nil {
		return nil, cli.Usagef(cmd, "%v", err)
	}
	target := *u
	target.Path = "/v1/pipeline:watch"
	body, err := protojson.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if post.Header, err = r.Header(); err != nil {
		return nil, err
	}
	post.Header.Set("Content-Type", "application/json")
	secure, err := r.TLS(u)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: secure, ResponseHeaderTimeout: r.Timeout}}
	resp, err := client.Do(post)
	if err != nil {
		if cause := (*url.Error)(nil); errors.As(err, &cause) {
			err = cause.Err
		}
		return nil, cli.Absent(u, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	var refusal struct{ Message string }
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if json.Unmarshal(text, &refusal) == nil && refusal.Message != "" {
		return nil, errors.New(refusal.Message)
	}
	return nil, fmt.Errorf("%s answers %s; is it a controller of Weft's?", u, resp.Status)
}

// printPackets prints packets until ctx or the stream ends.
func printPackets(ctx context.Context, cmd *cobra.Command, lines io.Reader, format string, count int) error {
	in := bufio.NewScanner(lines)
	in.Buffer(nil, maxPacket)
	for n := 0; (count == 0 || n < count) && in.Scan(); {
		line := &api.WatchPacketsResponse{}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(in.Bytes(), line); err != nil {
			return fmt.Errorf("a packet of the controller is not understood: %w", err)
		}
		if line.Missed > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "weft: %d packets are missing, as they came faster than they were read\n", line.Missed)
		}
		if line.Packet == nil {
			continue
		}
		if err := printPacket(cmd.OutOrStdout(), format, in.Bytes(), line.Packet); err != nil {
			return err
		}
		n++
	}
	if err := in.Err(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the connection to the controller is lost: %w", err)
	}
	return nil
}

func printPacket(w io.Writer, format string, text []byte, p *api.WatchedPacket) error {
	switch format {
	case "json":
		_, err := fmt.Fprintf(cli.PlainWriter{Writer: w}, "%s\n", text)
		return err
	case "yaml":
		b, err := cli.AsYAML(text)
		if err == nil {
			_, err = fmt.Fprintf(cli.PlainWriter{Writer: w}, "---\n%s", b)
		}
		return err
	}
	when := p.Time
	if at, err := time.Parse(time.RFC3339Nano, p.Time); err == nil {
		when = at.Local().Format("15:04:05.000000")
	}
	verdict := p.Verdict
	if verdict == "" {
		verdict = "no end known"
	}
	fmt.Fprintf(w, "%s  switch %s port %d  %s  %s after %s us\n", when, cli.Plain(p.Dpid), p.InPort, cli.Plain(p.Summary), cli.Plain(verdict), micros(p.DurationUs))
	t := &cli.Table{Writer: tabwriter.NewWriter(cli.PlainWriter{Writer: w}, 0, 8, 2, ' ', 0)}
	t.Row("  STAGE", "PROCESS", "BY", "START us", "TOOK us", "VERDICT", "OPERATIONS")
	for _, s := range p.Stages {
		operations := s.Operations
		if len(operations) == 0 {
			operations = []string{""}
		}
		t.Row("  "+s.Service, s.Process, s.Transport, micros(s.StartUs), micros(s.DurationUs), s.Verdict, operations[0])
		for _, o := range operations[1:] {
			io.WriteString(t, strings.Repeat("\t", 6)+cli.Plain(o)+"\n")
		}
	}
	for _, process := range p.Missing {
		t.Row("  ?", process, "", "", "", "", "the process tells nothing of the packet: stages are missing")
	}
	if err := t.Flush(); err != nil || len(p.Entries) == 0 {
		return err
	}
	t = &cli.Table{Writer: tabwriter.NewWriter(cli.PlainWriter{Writer: w}, 0, 8, 2, ' ', 0)}
	t.Row("  SWITCH", "AFTER us", "STATE", "CHANGE", "ERROR")
	for _, e := range p.Entries {
		t.Row("  "+e.Dpid, micros(e.AtUs), e.State, e.Operation, e.Error)
	}
	return t.Flush()
}

func micros(us float64) string { return fmt.Sprintf("%.1f", us) }
