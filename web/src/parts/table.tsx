// A table of a list: columns as data, and its own scroll bar on narrow screens.
import type { ComponentChildren } from "preact";
import css from "./table.module.css";

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  /** Numbers are aligned at their end. */
  isNumber?: boolean;
}

interface Props<T> {
  /** Says what the rows are. */
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string | number;
}

export function Table<T>({ label, columns, rows, keyOf }: Props<T>) {
  return (
    <div class={css.box} tabIndex={0} role="region" aria-label={label}>
      <table class={css.table}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" data-number={column.isNumber}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td key={column.title} data-number={column.isNumber}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
