// Whether the dashboard is one by the types that Grafana publishes, the options of each kind of panel included. `check.sh`
// puts the dashboard at the end.
import type { Dashboard, FieldConfig, FieldConfigSource, GraphFieldConfig, Panel, RowPanel } from "@grafana/schema";
import type { Options as StatOptions } from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type { Options as TableOptions, FieldConfig as TableFields } from "@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen";
import type { Options as TimeOptions } from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

/** `T` as JSON has it: members of an enum are their values. */
type Plain<T> = T extends string
  ? `${T}`
  : T extends number | boolean | null | undefined
    ? T
    : T extends (infer Item)[]
      ? Plain<Item>[]
      : T extends object
        ? { [Key in keyof T]: Plain<T[Key]> }
        : T;

/** A panel of the kind `Kind`. What is left out has its default. */
type Of<Kind, Options, Fields> = Omit<Panel, "type" | "options" | "fieldConfig"> & {
  type: Kind;
  options: Partial<Options>;
  fieldConfig: Omit<FieldConfigSource, "defaults"> & {
    defaults: Omit<FieldConfig, "custom"> & { custom?: Partial<Fields> };
  };
};

type Model = Omit<Dashboard, "panels"> & {
  panels: (
    | Of<"timeseries", TimeOptions, GraphFieldConfig>
    | Of<"stat", StatOptions, never>
    | Of<"table", TableOptions, TableFields>
    | (Omit<RowPanel, "type"> & { type: "row" })
  )[];
};

