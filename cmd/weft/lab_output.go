package main

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

func labOutputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "table", "table, json or yaml")
}

func labCheckOutput(output string) error {
	switch output {
	case "table", "json", "yaml":
		return nil
	}
	return fmt.Errorf("unknown output %q; allowed: table, json, yaml", output)
}

// labTable writes aligned columns.
type labTable struct{ *tabwriter.Writer }

func (t *labTable) row(cells ...any) {
	text := make([]string, len(cells))
	for i, c := range cells {
		text[i] = fmt.Sprint(c)
		if text[i] == "" {
			text[i] = "-"
		}
	}
	fmt.Fprintln(t, strings.Join(text, "\t"))
}

// labPrint writes v as JSON or YAML, or calls table for people.
func labPrint(w io.Writer, output string, v any, table func(*labTable)) error {
	if err := labCheckOutput(output); err != nil {
		return err
	}
	if output == "table" {
		t := &labTable{tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
		table(t)
		return t.Flush()
	}
	b, err := toJSON(v)
	if err != nil {
		return fmt.Errorf("encode the output: %w", err)
	}
	if output == "yaml" {
		if b, err = asYAML(b); err != nil {
			return fmt.Errorf("encode the output: %w", err)
		}
	}
	_, err = w.Write(b)
	return err
}

// labProgress tells what is being done, on stderr, once it has taken two
// seconds and again when it changes.
type labProgress struct {
	mu     sync.Mutex
	w      io.Writer
	what   string
	loud   bool
	timer  *time.Timer
	start  time.Time
	closed bool
}

func newLabProgress(w io.Writer) *labProgress {
	p := &labProgress{w: w, start: time.Now()}
	p.timer = time.AfterFunc(2*time.Second, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.loud = true
		p.say()
	})
	return p
}

func (p *labProgress) doing(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what = what
	if p.loud {
		p.say()
	}
}

// say writes the current line; mu is held.
func (p *labProgress) say() {
	if p.what != "" && !p.closed {
		fmt.Fprintf(p.w, "%s … (%.0f s)\n", p.what, time.Since(p.start).Seconds())
	}
}

func (p *labProgress) stop() {
	p.timer.Stop()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
}

// labSignals ends a command's context on SIGINT and SIGTERM.
func labSignals(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx == nil {
		ctx = context.Background()
	}
	return signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
}
