package engine

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	persistencespb "go.temporal.io/server/api/persistence/v1"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/searchattribute/sadefs"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	clusterName   = "active"
	namespaceName = "default"
)

// namespace is what the namespace "default" should have: how long the histories of closed loops are kept, and the
// search attributes.
type namespace struct {
	retention  time.Duration
	attributes map[string]enumspb.IndexedValueType
}

// ensure creates or corrects the namespace's record. It does so before the server starts and not through the server's
// API, because each of the server's four services caches the namespace for two seconds. A workflow that uses a search
// attribute that the history service does not know yet fails its task.
func (n namespace) ensure(ctx context.Context, cfg *config.SQL, db *sql.DB) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("set up namespace %q: %w", namespaceName, err)
		}
	}()
	fresh, err := sqliteschema.NewNamespaceConfig(clusterName, namespaceName, false, n.attributes)
	if err != nil {
		return err
	}
	// NewNamespaceConfig always sets 24 h.
	fresh.Detail.Config.Retention = durationpb.New(n.retention)
	if err := sqliteschema.CreateNamespaces(cfg, fresh); err != nil { // it leaves an existing one as it is
		return err
	}
	where := " WHERE name = '" + namespaceName + "'"
	return change(ctx, db, "namespaces", where, &persistencespb.NamespaceDetail{}, func(detail *persistencespb.NamespaceDetail) (bool, error) {
		before := proto.CloneOf(detail)
		detail.Config.Retention = durationpb.New(n.retention)
		if err := n.alias(detail.Config); err != nil || proto.Equal(before, detail) {
			return false, err
		}
		detail.ConfigVersion++
		return true, nil
	})
}

// alias gives each search attribute one of the columns that the visibility table has for its type. An attribute that
// has a column of another type moves to a column of the right one. Attributes that are not pawl's stay.
func (n namespace) alias(cfg *persistencespb.NamespaceConfig) error {
	columns := sadefs.GetDBIndexSearchAttributes(nil).CustomSearchAttributes
	if cfg.CustomSearchAttributeAliases == nil {
		cfg.CustomSearchAttributeAliases = map[string]string{}
	}
	aliases := cfg.CustomSearchAttributeAliases
	maps.DeleteFunc(aliases, func(column, name string) bool {
		want, ours := n.attributes[name]
		return ours && columns[column] != want
	})
	have := slices.Collect(maps.Values(aliases))
	free := slices.Sorted(maps.Keys(columns))
	for _, name := range slices.Sorted(maps.Keys(n.attributes)) {
		if slices.Contains(have, name) {
			continue
		}
		i := slices.IndexFunc(free, func(column string) bool {
			_, taken := aliases[column]
			return !taken && columns[column] == n.attributes[name]
		})
		if i < 0 {
			return fmt.Errorf("no column left for search attribute %s of type %s", name, n.attributes[name])
		}
		aliases[free[i]] = name
	}
	return nil
}
