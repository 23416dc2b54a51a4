package cli

import (
	"errors"
	"testing"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// A wrong argument is a usage error, also if the controller found it; a wrong file, or a
// request that cannot be done now, is not.
func TestAsUsage(t *testing.T) {
	plain, file := &cobra.Command{Use: "add NAME"}, &cobra.Command{Use: "apply FILE"}
	given := &cobra.Command{Use: "add"}
	given.Flags().String("file", "", "")
	_ = given.Flags().Set("file", "x")
	for _, c := range []struct {
		cmd   *cobra.Command
		err   error
		usage bool
	}{
		{plain, &RemoteError{codes.InvalidArgument, "type \"XYZ\": want another"}, true},
		{plain, api.Errorf(codes.InvalidArgument, "port x: want a number"), true},
		{plain, Usagef(plain, "want another"), true},
		{plain, &RemoteError{codes.NotFound, "there is no x"}, false},
		{plain, errors.New("no"), false},
		{file, &RemoteError{codes.InvalidArgument, "x"}, false},
		{given, &RemoteError{codes.InvalidArgument, "x"}, false},
	} {
		usage := (*UsageError)(nil)
		if err := AsUsage(c.cmd, c.err); errors.As(err, &usage) != c.usage || usage != nil && errors.As(usage.Err, &usage) {
			t.Errorf("%s: %v: %v", c.cmd.Use, c.err, err)
		}
	}
	if AsUsage(plain, nil) != nil {
		t.Error("nil is an error")
	}
}
