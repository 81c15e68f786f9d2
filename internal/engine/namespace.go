package engine

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

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

// ensureNamespace creates or corrects the record of the namespace "default": how long the histories of closed loops are
// kept, and the search attributes. It does so before the server starts and not through the server's API, because each of
// the server's four services caches the namespace for two seconds. A workflow that uses a search attribute that the
// history service does not know yet fails its task.
func (o Options) ensureNamespace(ctx context.Context, cfg *config.SQL, db *sql.DB) error {
	fresh, err := sqliteschema.NewNamespaceConfig(clusterName, namespaceName, false, o.SearchAttributes)
	if err != nil {
		return err
	}
	// NewNamespaceConfig always sets 24 h.
	fresh.Detail.Config.Retention = durationpb.New(o.Retention)
	if err := sqliteschema.CreateNamespaces(cfg, fresh); err != nil { // it leaves an existing one as it is
		return err
	}
	condition := " WHERE name = '" + namespaceName + "'"
	return change(ctx, db, "namespaces", condition, &persistencespb.NamespaceDetail{}, func(detail *persistencespb.NamespaceDetail) (bool, error) {
		original := proto.CloneOf(detail)
		detail.Config.Retention = durationpb.New(o.Retention)
		if err := o.alias(detail.Config); err != nil || proto.Equal(original, detail) {
			return false, err
		}
		detail.ConfigVersion++
		return true, nil
	})
}

// alias gives each search attribute one of the columns that the visibility table has for its type. An attribute that
// has a column of another type moves to a column of the right one. Attributes that are not pawl's stay.
func (o Options) alias(cfg *persistencespb.NamespaceConfig) error {
	columns := sadefs.GetDBIndexSearchAttributes(nil).CustomSearchAttributes
	if cfg.CustomSearchAttributeAliases == nil {
		cfg.CustomSearchAttributeAliases = map[string]string{}
	}
	aliases := cfg.CustomSearchAttributeAliases
	maps.DeleteFunc(aliases, func(column, name string) bool {
		want, ours := o.SearchAttributes[name]
		return ours && columns[column] != want
	})
	have := slices.Collect(maps.Values(aliases))
	free := slices.Sorted(maps.Keys(columns))
	for _, name := range slices.Sorted(maps.Keys(o.SearchAttributes)) {
		if slices.Contains(have, name) {
			continue
		}
		i := slices.IndexFunc(free, func(column string) bool {
			_, taken := aliases[column]
			return !taken && columns[column] == o.SearchAttributes[name]
		})
		if i < 0 {
			return fmt.Errorf("no column left for search attribute %s of type %s", name, o.SearchAttributes[name])
		}
		aliases[free[i]] = name
	}
	return nil
}
