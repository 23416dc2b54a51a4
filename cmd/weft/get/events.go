package get

import (
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
	"time"

	"github.com/coder/websocket"
	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// maxEvent is the largest event that is read, in octets.
const maxEvent = 64 << 20

func EventsCommand() *cobra.Command {
	var r cli.Remote
	var out cli.Output
	var subjects []string
	var count int
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Follow what happens",
		Long: `Follow what happens: switches, ports and links that come and go, hosts, routes,
refusals; until interrupted. With -o json, one object per line.`,
		Example: `  weft events
  weft events --subjects discovery.LinkChanged,forwarding
  weft events -o json | jq 'select(.subject == "hosts.HostChanged").event.host.mac'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if ctx == nil {
				ctx = context.Background()
			}
			ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			conn, err := FollowEvents(ctx, &r, cmd, subjects)
			if err != nil {
				return err
			}
			defer conn.CloseNow()
			for n := 0; count == 0 || n < count; n++ {
				_, text, err := conn.Read(ctx)
				if ctx.Err() != nil {
					return nil // interrupted
				}
				if err != nil {
					return followEnded(err)
				}
				if err := PrintEvent(cmd.OutOrStdout(), out.Format, text); err != nil {
					return err
				}
			}
			conn.Close(websocket.StatusNormalClosure, "")
			return nil
		},
	}
	r.Flags(cmd)
	cmd.Flags().StringSliceVar(&subjects, "subjects", nil, "only these kinds of event, or all those of a service (default all)")
	cmd.Flags().IntVarP(&count, "count", "n", 0, "stop after this many events; 0 is never")
	out.Flag(cmd)
	return cmd
}

// FollowEvents opens the event stream.
func FollowEvents(ctx context.Context, r *cli.Remote, cmd *cobra.Command, subjects []string) (*websocket.Conn, error) {
	u, err := r.Address()
	if err != nil {
		return nil, cli.Usagef(cmd, "%v", err)
	}
	target := *u
	target.Path = "/v1/events"
	if len(subjects) > 0 {
		target.RawQuery = url.Values{"subjects": {strings.Join(subjects, ",")}}.Encode()
	}
	bounded, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	header, err := r.Header()
	if err != nil {
		return nil, err
	}
	secure, err := r.TLS(u)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: secure}}
	defer client.CloseIdleConnections()
	conn, resp, err := websocket.Dial(bounded, target.String(), &websocket.DialOptions{HTTPHeader: header, HTTPClient: client})
	switch {
	case err == nil:
		conn.SetReadLimit(maxEvent)
		return conn, nil
	case resp != nil && resp.StatusCode != 0:
		var refusal struct{ Message string }
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		if json.Unmarshal(body, &refusal) == nil && refusal.Message != "" {
			if resp.StatusCode == http.StatusBadRequest {
				return nil, cli.Usagef(cmd, "%s", refusal.Message)
			}
			return nil, errors.New(refusal.Message)
		}
		return nil, fmt.Errorf("%s answers %s; is it a controller of Weft's?", u, resp.Status)
	}
	if cause := (*url.Error)(nil); errors.As(err, &cause) {
		err = cause.Err
	}
	return nil, cli.Absent(u, err)
}

// followEnded says why the stream has ended.
func followEnded(err error) error {
	if c := (websocket.CloseError{}); errors.As(err, &c) {
		return fmt.Errorf("the controller has ended the stream: %s", strings.TrimSpace(c.Reason+" ("+c.Code.String()+")"))
	}
	return fmt.Errorf("the connection to the controller is lost: %w", err)
}

// EventRecord is one event as the controller sends it.
type EventRecord struct {
	Time    time.Time       `json:"time"`
	Subject string          `json:"subject"`
	Event   json.RawMessage `json:"event"`
	Missed  int             `json:"missed"` // instead of an event: so many were left out, for they were read too slowly
}

func PrintEvent(w io.Writer, format string, text []byte) error {
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
	var e EventRecord
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("an event of the controller is not understood: %w", err)
	}
	if e.Missed > 0 {
		_, err := fmt.Fprintf(w, "%s  %d events were left out, as they were read too slowly: what they changed is only in the state now\n", e.Time.Local().Format("15:04:05.000"), e.Missed)
		return err
	}
	_, err := fmt.Fprintf(w, "%s  %-26s %s\n", e.Time.Local().Format("15:04:05.000"), e.Subject, cli.Plain(Sentence(e.Subject, e.Event)))
	return err
}
