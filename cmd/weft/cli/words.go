package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
)

// The libraries' words for what is wrong with a command line are a
// programmer's. Here they are put into those of who types it.

var (
	argCount  = regexp.MustCompile(`^(?:accepts|requires) .*arg\(s\)`)
	noWords   = regexp.MustCompile(`^unknown command ".*" for `)
	badNumber = regexp.MustCompile(`^invalid argument (".*") for (".*") flag: strconv\.(?:Parse)?(Int|Uint|Float|Bool|Atoi): parsing ".*": (.*)$`)
	badTime   = regexp.MustCompile(`^invalid argument (".*") for (".*") flag: time: (?:invalid duration|missing unit in duration|unknown unit)`)
	badValue  = regexp.MustCompile(`^invalid argument (".*?") for (".*?") flag: (.*)$`)
	notGiven  = regexp.MustCompile(`^required flag\(s\) (.*) not set$`)
)

// InWords returns the error of a command line in words.
func InWords(cmd *cobra.Command, args []string, err error) error {
	text := err.Error()
	switch {
	case argCount.MatchString(text):
		usage := strings.TrimSuffix(cmd.UseLine(), " [flags]")
		if len(args) == 0 {
			return fmt.Errorf("something is missing: want %s", usage)
		}
		return fmt.Errorf("%s, %s: want %s", Number(args, "word", "words"), strings.Join(args, " "), usage)
	case noWords.MatchString(text) && !cmd.HasSubCommands():
		return fmt.Errorf("%s: want %s, and nothing after it but flags", strings.Join(args, " "), strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	case badTime.MatchString(text):
		m := badTime.FindStringSubmatch(text)
		return fmt.Errorf("%s %s: want a duration, such as 500ms, 30s or 24h", flagName(m[2]), unquoted(m[1]))
	case badNumber.MatchString(text):
		m := badNumber.FindStringSubmatch(text)
		want := map[string]string{"Int": "a whole number", "Atoi": "a whole number", "Uint": "a whole number, not below 0", "Float": "a number", "Bool": "true or false"}[m[3]]
		if m[4] == strconv.ErrRange.Error() {
			want = "a smaller number"
		}
		return fmt.Errorf("%s %s: want %s", flagName(m[2]), unquoted(m[1]), want)
	case badValue.MatchString(text):
		m := badValue.FindStringSubmatch(text)
		if strings.Contains(m[3], m[1]) { // it is named there
			return fmt.Errorf("%s: %s", flagName(m[2]), m[3])
		}
		return fmt.Errorf("%s %s: %s", flagName(m[2]), unquoted(m[1]), m[3])
	case notGiven.MatchString(text):
		names := strings.Split(notGiven.FindStringSubmatch(text)[1], ", ")
		for i, name := range names {
			names[i] = "--" + strings.Trim(name, `"`)
		}
		return fmt.Errorf("give %s", strings.Join(names, ", "))
	}
	return err
}

// flagName returns the long name out of pflag's "-s, --switch".
func flagName(quoted string) string {
	name := strings.Trim(quoted, `"`)
	if _, long, ok := strings.Cut(name, ", "); ok {
		return long
	}
	return name
}

func unquoted(text string) string {
	if plain, err := strconv.Unquote(text); err == nil {
		return strconv.Quote(plain)
	}
	return text
}

// Several writes a number of things.
func Several(n uint32, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// Number writes how many things a list has.
func Number[T any](list []T, one, more string) string {
	return Several(uint32(len(list)), one, more)
}

// Unanswered says that a call has found no answer in time. Only the client's
// own end of time is meant: what the controller says of its own stays.
func Unanswered(ctx context.Context, code codes.Code, timeout time.Duration) error {
	if code != codes.DeadlineExceeded || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	return fmt.Errorf("no answer within %v (--timeout); weft get health and weft get workers say whether the controller is well, its log why not", timeout)
}

// FirstFew writes the first of many names.
func FirstFew(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Signals returns a context that ends with the command's or on interrupt,
// so that what bench has started is stopped.
func Signals(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// Mistakes returns an error that counts what is wrong; nil if nothing is.
func Mistakes(n int) error {
	switch n {
	case 0:
		return nil
	case 1:
		return errors.New("1 mistake")
	}
	return fmt.Errorf("%d mistakes", n)
}

// WithProtocols writes protocols, as ovs-ofctl names them, as the fields of a match.
func WithProtocols(match string) string {
	fields := map[string]string{
		"ip": "eth_type=0x0800", "tcp": "eth_type=0x0800,ip_proto=6", "udp": "eth_type=0x0800,ip_proto=17", "sctp": "eth_type=0x0800,ip_proto=132", "icmp": "eth_type=0x0800,ip_proto=1",
		"ipv6": "eth_type=0x86dd", "tcp6": "eth_type=0x86dd,ip_proto=6", "udp6": "eth_type=0x86dd,ip_proto=17", "sctp6": "eth_type=0x86dd,ip_proto=132", "icmp6": "eth_type=0x86dd,ip_proto=58",
	}
	items := strings.Split(match, ",")
	for i, s := range items {
		if f, ok := fields[s]; ok {
			items[i] = f
		}
	}
	return strings.Join(items, ",")
}
