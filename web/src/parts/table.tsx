// A table of a list: columns as data. On narrow screens each row is a card, with the titles beside the values.
import type { ComponentChildren } from "preact";
import css from "./table.module.css";

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  /** Numbers are aligned at their end. */
  isNumber?: boolean;
  /** A share of the table, where several tables stand above one another. */
  width?: string;
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
      {/* The roles are said because cards are no longer laid out as a table. */}
      <table class={css.table} role="table">
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column) => (
              <th key={column.title} role="columnheader" scope="col" data-number={column.isNumber} style={{ width: column.width }}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={keyOf(row)} role="row">
              {columns.map((column) => (
                <td key={column.title} role="cell" data-title={column.title} data-number={column.isNumber}>
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
