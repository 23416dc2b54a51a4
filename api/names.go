package api

import (
	"fmt"
	"regexp"
	"strings"
)

var objectName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,63}$`)

// CheckName reports a name that no object may have, such as a policy, a gateway,
// a tenant or a token; what says in errors which name it is. Names stand in
// keys of the store, in paths of URLs and in labels of metrics: they are 1 to
// 63 letters, digits, '_', '-' and '.', with no '.' at either end or beside
// another.
func CheckName(what, name string) error {
	if !objectName.MatchString(name) || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, "..") {
		return fmt.Errorf("%s %.80q: want 1 to 63 letters, digits, '_', '-' and '.', with no '.' at either end or beside another", what, name)
	}
	return nil
}
